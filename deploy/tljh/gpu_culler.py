"""gpu-culler on The Littlest JupyterHub: goes to /opt/tljh/config/jupyterhub_config.d/gpu_culler.py."""

c = get_config()  # noqa: F821, the Hub provides it

c.JupyterHub.services.append(
    {
        "name": "gpu-culler",
        "url": "http://127.0.0.1:10182",
        "command": ["/usr/local/bin/gpu-culler", "run", "--config", "/etc/gpu-culler/gpu-culler.toml"],
        "oauth_no_confirm": True,
    }
)

c.JupyterHub.load_roles.extend(
    [
        {  # what each scope is for: jupyterhub_config_example.py
            "name": "gpu-culler",
            "services": ["gpu-culler"],
            "scopes": [
                "list:users",
                "read:servers",
                "admin:server_state",
                "tokens",
                "read:users:groups",
                "delete:servers",  # leave it out while the mode is observe or warn
            ],
        },
        # Who may see the page; repeat here what else your users may do.
        {"name": "user", "scopes": ["self", "access:services!service=gpu-culler"]},
    ]
)
