"""What an existing JupyterHub needs so that it runs gpu-culler as a managed service.

Paste this into jupyterhub_config.py, or load it from there:

    load_subconfig("jupyterhub_config_example.py")

It adds to the lists that are there, so it belongs after any line that sets c.JupyterHub.services or load_roles.
Everything that gpu-culler itself decides (limits, mail, mode) is in its own file, given by --config.
The default mode there is "observe": it looks, decides and shows, and neither mails nor stops anything.
"""

c = get_config()  # noqa: F821, the Hub provides it

c.JupyterHub.services.append(
    {
        "name": "gpu-culler",
        # The Hub waits for this address when it starts. gpu-culler answers there at once, even with a broken
        # configuration, and shows on its page what is wrong: it never keeps the Hub from starting.
        # http also under internal_ssl: the Hub cannot check a service whose url is https, and would end itself.
        "url": "http://127.0.0.1:10182",
        # Looked up on the Hub's PATH; give the full path if the Hub's environment is a small one.
        "command": ["gpu-culler", "run", "--config", "/etc/gpu-culler/gpu-culler.toml"],
        # Users come from the Hub's own page or from a link in a mail: do not ask them to authorize it first.
        "oauth_no_confirm": True,
    }
)

c.JupyterHub.load_roles.append(
    {
        "name": "gpu-culler",
        "services": ["gpu-culler"],
        "scopes": [
            "list:users",  # who there is, and on JupyterHub 6 the mail address (user_info)
            "read:servers",  # which servers run, since when, last activity, chosen profile
            "admin:server_state",  # the spawner's state: process, pod or job, to find the cards a server holds
            # ask a server which kernels are busy (and, where the config says so, shut idle ones down), with a token made for that server alone, since its user can read
            # what is sent there. This is the strongest scope here (it can make tokens of admins, too): leave it out
            # with hub.probe_kernels = false. On JupyterHub 6 it can be limited, for example "tokens!group=gpu".
            "tokens",
            "read:users:groups",  # rules that match groups; leave out if no rule does
            "delete:servers",  # stop a server; leave out while the mode is "observe" or "warn"
            # "read:users:activity", "delete:users",  # only with cpu_servers.cull_users or --cull-users
        ],
    }
)

# Who may log in to the service's page. Admins may anyway; this lets every user see and keep their own session.
c.JupyterHub.extra_user_scopes.update({"access:services!service=gpu-culler"})
# JupyterHub 5 has no extra_user_scopes. Use this instead (and repeat there what else your users may do):
# c.JupyterHub.load_roles.append({"name": "user", "scopes": ["self", "access:services!service=gpu-culler"]})
