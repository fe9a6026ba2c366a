"""The real jupyterhub-idle-culler 2 beside gpu-culler, with the hook that deploy/ holds."""

import os
import subprocess
import sys

from lab.hub import REPOSITORY
from lab.stories import crunch_and_leave, forget_and_leave
from lab.waiting import eventually, holds
from other_hubs import ChangedHub

HOOK = REPOSITORY / "deploy/idle_culler_config.py"
TIMEOUT = 12  # seconds


class WithIdleCuller(ChangedHub):
    """A Hub with both cullers as its services."""

    lines = f"""
c.JupyterHub.services.append({{
    "name": "idle-culler",
    # It does not notice by itself that its Hub is gone.
    "command": ["setpriv", "--pdeathsig", "KILL", sys.executable, "-m", "jupyterhub_idle_culler", "--timeout={TIMEOUT}",
                "--cull-every=2", "--config={HOOK}"],
    "environment": {{"GPU_CULLER_ARBITER": lab["culler_url"] + "/services/gpu-culler/api/v1/arbiter"}},
}})
c.JupyterHub.load_roles.append({{
    "name": "idle-culler",
    "services": ["idle-culler"],
    "scopes": ["list:users", "read:users:activity", "read:servers", "delete:servers", "access:services!service=gpu-culler"],
}})
"""


def test_it_stops_what_holds_no_card_and_leaves_to_gpu_culler_what_does(start_hub, culler_config, arrive, mailbox):
    hub = start_hub(culler_config(policy={"grace": "10m"}), WithIdleCuller)
    nora, carl, ella = arrive(hub, "nora", "carl", "ella")
    forget_and_leave(nora)  # an idle card
    carl.leave()  # no card, nobody there
    crunch_and_leave(ella)

    eventually("carl's server is gone", lambda: not carl.is_running(), within=60)
    assert "Culling server carl" in hub.log.read_text()
    eventually("nora is warned by gpu-culler", lambda: mailbox.to(nora.address), within=60)
    holds("both others live", lambda: nora.is_running() and ella.is_running(), during=TIMEOUT)
    assert hub.metrics("gpu_culler_stops_total", outcome="stopped") == 0


def test_without_an_answer_the_hook_lets_nothing_be_stopped(silent_server):
    ask = f"""
import datetime, types
c = types.SimpleNamespace(IdleCuller=types.SimpleNamespace())
exec(open({str(HOOK)!r}).read())
long = datetime.timedelta(days=9)
print(c.IdleCuller.cull_arbiter_hook(inactive=long, inactive_limit=1, server={{"url": "/user/nora/"}}, user=None))
"""
    for address in ["http://127.0.0.1:1/", f"http://127.0.0.1:{silent_server}/"]:
        environment = {**os.environ, "GPU_CULLER_ARBITER": address, "JUPYTERHUB_API_TOKEN": "t", "NO_PROXY": "*"}
        ran = subprocess.run([sys.executable, "-c", ask], env=environment, capture_output=True, text=True, timeout=60)
        assert ran.stdout.strip() == "False", ran.stdout + ran.stderr
