"""An exemption is listed with what it costs, its end is told of once, and past its end it protects nobody."""

from datetime import date, timedelta

from lab.stories import forget_and_leave
from lab.waiting import eventually, holds

OWNER, ADMINS = "mlops@example.org", "gpu-admins@example.org"


def exempt(config, days):
    """The configuration with an exemption of nora's servers that ends in so many days."""
    rules = config.read_text().split("\n[[rule]]")[0]
    end = date.today() + timedelta(days=days)
    config.write_text(
        f"""{rules}
[[rule]]
name = "standby"
match = {{ users = ["nora"] }}
exempt = {{ until = "{end}", reason = "nightly scoring", owner = "mlops" }}
"""
    )


def test_an_exemption_ends_announced(start_hub, culler_config, arrive, mailbox, gpu_culler):
    config = culler_config(mail={"admins": [ADMINS]}, policy={"warn_after": "8s"}, safety={"min_uptime": "1s"})
    exempt(config, days=3)
    hub = start_hub(config)
    (nora,) = arrive(hub, "nora")
    forget_and_leave(nora)

    for address in (OWNER, ADMINS):
        (told,) = eventually(f"{address} is told", lambda to=address: mailbox.to(to), within=30)
        assert "Exemption standby ends in" in told["Subject"]

    hub.culler_process().kill()
    eventually("the Hub starts it again", lambda: hub.page().ok, within=60)
    eventually("it looks", lambda: hub.metrics("gpu_culler_cycles_total"))
    holds("nobody is told twice", lambda: len(mailbox.mails) == 2, during=15)
    assert hub.metrics("gpu_culler_sessions", verdict="protected") == 1

    planned = gpu_culler(hub, config, "plan", "--format", "json").lines()
    (standby,) = [line for line in planned if line.get("exemption")]
    assert (standby["owner"], standby["reason"], standby["servers"]) == ("mlops", "nightly scoring", ["nora/"])
    assert 0 < standby["idle_gpu_hours"] < 0.1
    assert "GPU-hours at rest" in gpu_culler(hub, config, "plan").out

    exempt(config, days=-1)
    eventually("nora is warned like everybody", lambda: mailbox.to(nora.address), within=60)
    checked = gpu_culler(hub, config, "check")
    assert checked.code == 0, checked.out
    assert '"standby": 1' in checked.out and "it protects no longer" in checked.out
