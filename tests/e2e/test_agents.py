"""Three GPU nodes with an agent on each; one of them falls silent."""

import json
import signal

import trustme
from conftest import CULLER, LIBRARY
from lab.waiting import eventually
from nodes import Nodes
from working import explain

SPAWNER = """
from jupyterhub.spawner import SimpleLocalProcessSpawner
class OnNode(SimpleLocalProcessSpawner):
    def get_state(self):
        return {**super().get_state(), "remote_ip": json.loads(%r)[self.user.name]}
c.JupyterHub.spawner_class = OnNode
c.OnNode.home_dir_template = str(directory / "home" / "{username}")
"""


def hold(person, node, then=""):
    """The person's kernel holds the node's card, and does something with it."""
    scene = f"import os, fake_card, time; os.environ['FAKE_NVML_SCENE'] = {str(node.scene)!r}; fake_card.hold(20)"
    if then:
        person.kernel.start(f"{scene}\n{then}")
    else:
        person.kernel.run(scene)
    person.leave()


def test_a_node_that_falls_silent_is_unknown_for_its_own_sessions_alone(
    start_hub, culler_config, arrive, mailbox, gpu_culler, tmp_path
):
    with Nodes(tmp_path, CULLER, LIBRARY) as nodes:
        one, two, three = nodes.all
        where = {"ada": one.address, "bob": two.address, "cyd": three.address, "dan": "198.18.255.1"}
        (tmp_path / "more_config.py").write_text(SPAWNER % json.dumps(where))
        telemetry = {"source": "agents", "agents": nodes.settings()}
        config = culler_config(telemetry=telemetry, policy={"warn_after": "12s", "grace": "10s"})
        hub = start_hub(config)
        ada, bob, cyd, dan = arrive(hub, *where)
        hold(ada, one, "with fake_card.work(sm=90, dram=50): time.sleep(3600)")
        hold(bob, two)
        hold(cyd, three)
        eventually("ada's card is seen at work", lambda: explain(hub, ada)["verdict"].startswith("busy: a card"))
        eventually("bob's card is known", lambda: f"card GPU-of-{two.name}" in explain(hub, bob))

        two.cut_off()
        eventually("cyd is warned", lambda: mailbox.to(cyd.address), within=40)
        eventually("cyd's server is stopped", lambda: not cyd.is_running(), within=40)
        assert not mailbox.to(ada.address) and not mailbox.to(bob.address) and not mailbox.to(dan.address)
        told = explain(hub, bob)
        assert told["verdict"].startswith("unknown") and f"{two.address}:9410 cannot be asked" in told["verdict"]
        assert explain(hub, ada)["verdict"].startswith("busy: a card")
        assert "where no agent is asked" in explain(hub, dan)["verdict"]
        assert hub.metrics("gpu_culler_problems") >= 1

        two.reconnect()
        eventually("bob is judged again", lambda: mailbox.to(bob.address), within=60)
        checked = gpu_culler(hub, config, "check")
        assert f"ok     agents       {one.address}:9410: 1 cards" in checked.out, checked.out


def test_agents_that_must_not_be_believed_are_told_apart(culler_config, gpu_culler, start_hub, tmp_path):
    with Nodes(tmp_path, CULLER, LIBRARY) as nodes:
        other = tmp_path / "another-token"
        other.write_text("guessed")
        telemetry = {"source": "agents", "agents": nodes.settings()}
        hub = start_hub(culler_config(telemetry=telemetry, mode="observe"))

        def checked(name, **changes):
            changed = {"source": "agents", "agents": {**nodes.settings(), **changes}}
            ran = gpu_culler(hub, culler_config(name, telemetry=changed, mode="observe"), "check")
            return ran.code, [line for line in ran.out.splitlines() if line.split()[1] == "agents"]

        code, lines = checked("wrong-token.toml", token_file=str(other))
        assert code == 1 and len(lines) == 3 and all("refuses our token" in line for line in lines)
        code, lines = checked("wrong-authority.toml", ca_file=culler_ca(tmp_path))
        assert code == 1 and all("certificate" in line and "wrong  agents" in line for line in lines), lines
        nodes.all[0].process.send_signal(signal.SIGSTOP)
        code, lines = checked("one-hangs.toml")
        nodes.all[0].process.send_signal(signal.SIGCONT)
        assert code == 1 and "no answer within 2 s" in lines[0] and len(lines) == 3 and all(line.startswith("ok ") for line in lines[1:]), lines


def culler_ca(directory):
    file = directory / "another-ca.pem"
    trustme.CA().cert_pem.write_to_path(file)
    return str(file)
