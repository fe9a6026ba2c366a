"""The Hub of the demo and of the end-to-end tests: the repository's example configuration on one machine,
without accounts, containers or fixed ports. The program that starts the Hub passes what differs in LAB_SETTINGS."""

import json
import os
import sys
from pathlib import Path

c = get_config()  # noqa: F821, the Hub provides it
lab = json.loads(os.environ["LAB_SETTINGS"])
directory = Path(lab["directory"])
bin_directory = Path(sys.executable).parent

# First what an admin would paste, then only the parts of it that must differ here.
c.JupyterHub.services = []
c.JupyterHub.load_roles = []
exec(compile(Path(lab["example"]).read_text(), lab["example"], "exec"))
culler = c.JupyterHub.services[-1]
culler["url"] = lab["culler_url"]
culler["command"] = lab["culler_command"]
culler["environment"] = lab["environment"]

# The demo acts for its people through this service, so nobody has to click.
c.JupyterHub.services.append({"name": "lab", "api_token": lab["token"]})
c.JupyterHub.load_roles.append(
    {
        "name": "lab",
        "services": ["lab"],
        "scopes": [
            "admin:users",
            "admin:servers",
            "tokens",
            "read:hub",
            "read:metrics",  # the service's metrics, too
            "access:services!service=gpu-culler",
        ],
    }
)

c.JupyterHub.bind_url = lab["public_url"]
c.JupyterHub.public_url = lab["public_url"] + "/"
c.JupyterHub.hub_bind_url = lab["hub_url"]
c.ConfigurableHTTPProxy.api_url = lab["proxy_api_url"]
c.ConfigurableHTTPProxy.command = lab["proxy_command"]
c.ConfigurableHTTPProxy.pid_file = str(directory / "proxy.pid")
c.JupyterHub.db_url = f"sqlite:///{directory}/hub.sqlite"
c.JupyterHub.cookie_secret_file = str(directory / "cookie_secret")
c.JupyterHub.allow_named_servers = True
c.JupyterHub.last_activity_interval = 2  # seconds; the proxy's view of who is there must keep up with short limits

c.JupyterHub.authenticator_class = "dummy"
c.DummyAuthenticator.password = "demo"
c.Authenticator.allow_all = True
c.Authenticator.admin_users = {"admin"}

c.JupyterHub.spawner_class = "simple"
c.SimpleLocalProcessSpawner.home_dir_template = str(directory / "home" / "{username}")
c.Spawner.cmd = [str(bin_directory / "jupyterhub-singleuser")]
c.Spawner.args = ["--allow-root"] if os.geteuid() == 0 else []
c.Spawner.environment = lab["environment"]

# What a single test needs besides.
more = directory / "more_config.py"
if more.exists():
    exec(compile(more.read_text(), str(more), "exec"))
