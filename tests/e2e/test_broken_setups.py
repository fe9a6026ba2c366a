"""Whatever is wrong with the setup: the Hub starts and stays up, nothing is stopped, and the page says why."""

import pytest
from lab.page import visible_text
from lab.ports import free_ports
from lab.stories import forget_and_leave
from lab.waiting import eventually, holds

SHORT = {"warn_after": "5s", "grace": "5s"}


@pytest.fixture
def nothing_happens(start_hub, arrive, mailbox):
    """Starts a Hub with this configuration and an abandoned session, and looks at it for ample time."""

    def check(config, *words):
        hub = start_hub(config)
        (nora,) = arrive(hub, "nora")
        forget_and_leave(nora)

        def page_says_why():
            text = visible_text(hub.page().text)
            return all(word in text for word in words) and hub.metrics("gpu_culler_problems") >= 1

        eventually(f"the page says {words}", page_says_why, within=30)
        holds("nora's server runs on", lambda: nora.is_running() and len(nora.processes()) == 2, during=15)
        eventually(f"the page still says {words}", page_says_why, within=5)
        assert not hub.metrics("gpu_culler_stops_total")
        assert hub.stranger().status_code == 302, "without a login nothing is shown"
        assert mailbox.mails == []
        assert hub.process.poll() is None
        return hub, nora

    return check


def works_by_itself(hub, nora, mailbox):
    """The service goes to work once the setup is mended, without a restart."""
    culler = hub.culler_process()
    eventually("nora is warned", lambda: mailbox.to(nora.address), within=60)
    assert hub.culler_process() == culler
    eventually("the page has no complaint", lambda: hub.metrics("gpu_culler_problems") == 0)


def test_without_an_nvml_library(nothing_happens, culler_config, mailbox):
    missing = "/nonexistent/libnvidia-ml.so.1"
    found = nothing_happens(culler_config(telemetry={"nvml": {"library": missing}}, policy=SHORT), missing)
    culler_config(policy=SHORT)
    works_by_itself(*found, mailbox)


def test_with_a_misspelt_key(nothing_happens, culler_config, mailbox):
    misspelt = culler_config(policy={**SHORT, "warn_afer": "5s"})
    found = nothing_happens(misspelt, "warn_afer", "warn_after")
    culler_config(policy=SHORT)
    works_by_itself(*found, mailbox)


def test_with_a_file_that_is_no_toml(nothing_happens, culler_config):
    config = culler_config()
    config.write_text("mode = enforce, please\n")
    nothing_happens(config, "gpu-culler.toml")


def test_with_no_file_at_all(nothing_happens, culler_config, mailbox):
    config = culler_config()
    config.unlink()
    found = nothing_happens(config, "gpu-culler.toml")
    culler_config(policy=SHORT)
    works_by_itself(*found, mailbox)


def test_with_nobody_listening_where_the_mail_server_should_be(nothing_happens, culler_config, mailbox):
    (port,) = free_ports(1)
    dead = {"server": f"smtp://127.0.0.1:{port}"}
    found = nothing_happens(culler_config(mail=dead, policy=SHORT), "mail does not go out", str(port))
    culler_config(policy=SHORT)
    works_by_itself(*found, mailbox)


def test_with_a_mail_server_that_never_answers(nothing_happens, culler_config, silent_server):
    silent = {"server": f"smtp://127.0.0.1:{silent_server}", "timeout": "3s"}
    nothing_happens(culler_config(mail=silent, policy=SHORT), "mail does not go out", str(silent_server))


def test_a_bad_change_leaves_the_old_settings_in_force(start_hub, culler_config, arrive, mailbox):
    hub = start_hub(culler_config(policy={"grace": "10m"}))
    (nora,) = arrive(hub, "nora")
    culler_config(policy={"grace": "never ever"})
    eventually("the page says so", lambda: "stay in force" in visible_text(hub.page().text))
    forget_and_leave(nora)
    eventually("nora is warned all the same", lambda: mailbox.to(nora.address), within=60)
