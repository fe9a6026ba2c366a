"""For jupyterhub-idle-culler 2 beside gpu-culler: `--config /path/to/idle_culler_config.py`.

It asks gpu-culler before it stops anything, and stops nothing where it gets no answer. Its service needs the scopes
"read:servers" (which it has) and "access:services!service=gpu-culler". Leave out --max-age: idle-culler stops an old
server without asking the hook (gpu-culler has policy.max_age and cpu_servers.max_age, which warn first).
"""

import os

import requests


def ask_gpu_culler(inactive, inactive_limit, server, **_):
    seconds = inactive.total_seconds() if inactive is not None else None
    question = {"server": server, "inactive": seconds, "inactive_limit": inactive_limit}
    token = {"Authorization": f"token {os.environ['JUPYTERHUB_API_TOKEN']}"}
    try:
        answer = requests.post(os.environ["GPU_CULLER_ARBITER"], json=question, headers=token, timeout=10)
        return answer.json()["cull"] is True
    except (requests.RequestException, ValueError, KeyError):
        return False


c.IdleCuller.cull_arbiter_hook = ask_gpu_culler  # noqa: F821, the config loader provides it
