"""A real JupyterHub with real people's servers and kernels, started and ended by a program."""
