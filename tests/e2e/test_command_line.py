"""What the commands say about a running service, with the service's own environment."""

import pytest
from lab.ports import free_ports
from lab.stories import forget_and_leave
from lab.waiting import eventually


@pytest.fixture
def at_rest(start_hub, culler_config, arrive, mailbox):
    """A Hub on which nora was warned and has ten minutes, and its configuration."""
    config = culler_config(policy={"warn_after": "8s", "grace": "10m"})
    hub = start_hub(config)
    (nora,) = arrive(hub, "nora")
    forget_and_leave(nora)
    eventually("nora is warned", lambda: mailbox.to(nora.address), within=60)
    return hub, config


def test_explain_plan_and_check(at_rest, culler_config, gpu_culler, subtests):
    hub, config = at_rest

    with subtests.test("explain tells a person what is known"):
        ran = gpu_culler(hub, config, "explain", "nora")
        assert ran.code == 0, ran.errors
        for words in ("idle", "GPU-fake-0", "35.4 GiB", "deadline", "grace 10m"):
            assert words in ran.out, f"{words!r} is missing in:\n{ran.out}"
        assert "nora@" not in ran.out

    with subtests.test("explain tells a program"):
        (line,) = gpu_culler(hub, config, "explain", "nora", "--format", "json").lines()
        assert (line["server"], line["verdict"]) == ("nora/", "idle")

    with subtests.test("explain of nobody"):
        ran = gpu_culler(hub, config, "explain", "nobody")
        assert ran.code == 1
        assert "nobody" in ran.out and "nora/" in ran.out

    with subtests.test("plan"):
        ran = gpu_culler(hub, config, "plan", "--format", "json")
        assert ran.code == 0, ran.errors
        (line,) = ran.lines()
        assert (line["server"], line["verdict"], line["action"]) == ("nora/", "idle", None)
        assert "promised" in line["held_back"]

    with subtests.test("check finds a good setup good"):
        ran = gpu_culler(hub, config, "check", "--format", "json")
        assert ran.code == 0, ran.out + ran.errors
        assert {line["grade"] for line in ran.lines()} == {"ok"}
        assert {line["what"] for line in ran.lines()} >= {"config", "hub", "scopes", "servers", "cards", "mail"}

    with subtests.test("check of a wrong token"):
        says_wrong(gpu_culler(hub, config, "check", JUPYTERHUB_API_TOKEN="no-such-token"), "scopes", "TOKEN")

    with subtests.test("check of a token that may not stop"):
        scopes = ["list:users", "read:servers", "admin:server_state", "access:servers", "read:users:groups"]
        made = hub.api("POST", "/users/admin/tokens", json={"scopes": scopes})
        ran = gpu_culler(hub, config, "check", JUPYTERHUB_API_TOKEN=made["token"])
        says_wrong(ran, "scopes", "delete:servers")

    with subtests.test("check of a mail server that is not there"):
        (port,) = free_ports(1)
        dead = culler_config("dead-mail.toml", mail={"server": f"smtp://127.0.0.1:{port}"})
        says_wrong(gpu_culler(hub, dead, "check"), "mail", f"127.0.0.1:{port}", "refused")

    with subtests.test("check without an NVML library"):
        blind = culler_config("blind.toml", telemetry={"nvml": {"library": "/nonexistent/nvml.so"}})
        says_wrong(gpu_culler(hub, blind, "check"), "cards", "/nonexistent/nvml.so", "Install")

    with subtests.test("misuse"):
        assert gpu_culler(hub, config, "no-such-command").code == 2


def says_wrong(ran, what, *words):
    """Exit status 1, and this alone is wrong, for that reason; the token shows nowhere."""
    assert ran.code == 1, ran.out + ran.errors
    wrong = [line for line in ran.out.splitlines() if line.startswith("wrong")]
    assert wrong, ran.out
    assert all(line.split()[1] == what for line in wrong if what != "scopes"), ran.out
    assert any(line.split()[1] == what and all(word in line for word in words) for line in wrong), ran.out
    assert "no-such-token" not in ran.out + ran.errors
