"""Hubs that are set up unlike the demo's."""

from lab.hub import DEMO, REPOSITORY, Hub


class ChangedHub(Hub):
    """The demo's Hub with more lines at the end of its configuration."""

    lines = ""

    def __init__(self, directory, *arguments, **keywords):
        super().__init__(directory, *arguments, **keywords)
        self.config = self.directory / "jupyterhub_config.py"
        base = DEMO / "jupyterhub_config.py"
        self.config.write_text(f"exec(compile(open({str(base)!r}).read(), {str(base)!r}, 'exec'))\n{self.lines}\n")


class TlsHub(ChangedHub):
    """Everything inside speaks TLS and shows certificates of the Hub's own authorities."""

    lines = """
c.JupyterHub.internal_ssl = True
c.JupyterHub.internal_certs_location = str(directory / "internal-ssl")
c.JupyterHub.hub_bind_url = lab["hub_url"].replace("http:", "https:")
c.ConfigurableHTTPProxy.api_url = lab["proxy_api_url"].replace("http:", "https:")
"""

    def _start_once(self):
        super()._start_once()
        self.hub_url = self.public_url  # directly it lets in only who has a certificate


class Hub5(ChangedHub):
    """JupyterHub 5."""

    python = REPOSITORY / "target/venv5/bin/python"
    lines = """
c.JupyterHub.load_roles.append({"name": "user", "scopes": ["self", "access:services!service=gpu-culler"]})
"""


class NoTokens(ChangedHub):
    """The service may not ask kernels."""

    lines = """
culler_role = next(role for role in c.JupyterHub.load_roles if role["name"] == "gpu-culler")
culler_role["scopes"].remove("tokens")
"""


class UsersMayGo(ChangedHub):
    """The service may delete users."""

    lines = """
culler_role = next(role for role in c.JupyterHub.load_roles if role["name"] == "gpu-culler")
culler_role["scopes"] += ["read:users:activity", "delete:users"]
"""


class FailingStops(ChangedHub):
    """A spawner whose stop fails for olga, and takes its time for sam."""

    lines = """
from jupyterhub.spawner import SimpleLocalProcessSpawner
import asyncio

class Unwilling(SimpleLocalProcessSpawner):
    async def stop(self, now=False):
        if self.user.name == "olga":
            raise RuntimeError("the machine does not answer")
        if self.user.name == "sam":
            await asyncio.sleep(12)  # the Hub answers after 10
        await super().stop(now)

c.JupyterHub.spawner_class = Unwilling
"""


class LabHub(Hub):
    """Servers with JupyterLab and an extension that polls kernels."""

    python = REPOSITORY / "target/venv-lab/bin/python"
