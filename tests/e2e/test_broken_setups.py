"""Whatever is wrong with the setup: the Hub starts and stays up, nothing is stopped, and the page says why."""

import pytest
from lab.ports import free_ports
from lab.stories import forget_and_leave
from lab.waiting import eventually, holds

SHORT = {"warn_after": "5s", "grace": "5s", "remind_before": []}


@pytest.fixture
def nothing_happens(start_hub, arrive, mailbox):
    """Starts a Hub with this configuration and an abandoned session, and returns the page after ample time."""

    def check(config, *words):
        hub = start_hub(config)
        (nora,) = arrive(hub, "nora")
        forget_and_leave(nora)

        def page_says_why():
            text = hub.page().text.lower()
            return all(word.lower() in text for word in words)

        eventually(f"the page says {words}", page_says_why, within=30)
        holds("nora's server runs on", lambda: nora.is_running() and len(nora.processes()) == 2, during=25)
        assert page_says_why(), hub.page().text
        assert hub.metrics("gpu_culler_problems") >= 1
        assert not hub.metrics("gpu_culler_stops_total")
        assert "nora" not in hub.page().text, "a page without a login must not name anybody"
        assert mailbox.mails == []
        assert hub.process.poll() is None

    return check


def test_without_an_nvml_library(nothing_happens, culler_config):
    missing = "/nonexistent/libnvidia-ml.so.1"
    nothing_happens(culler_config(telemetry={"nvml": {"library": missing}}, policy=SHORT), missing)


def test_with_a_misspelt_key(nothing_happens, culler_config):
    nothing_happens(culler_config(policy={**SHORT, "warn_afer": "5s"}), "warn_afer", "warn_after")


def test_with_a_file_that_is_no_toml(nothing_happens, culler_config):
    config = culler_config()
    config.write_text("mode = enforce, please\n")
    nothing_happens(config, "gpu-culler.toml")


def test_with_no_file_at_all(nothing_happens, culler_config):
    config = culler_config()
    config.unlink()
    nothing_happens(config, "gpu-culler.toml")


def test_with_nobody_listening_where_the_mail_server_should_be(nothing_happens, culler_config):
    (port,) = free_ports(1)
    nothing_happens(culler_config(mail={"server": f"smtp://127.0.0.1:{port}"}, policy=SHORT), "mail")


def test_with_a_mail_server_that_never_answers(nothing_happens, culler_config, silent_server):
    nothing_happens(culler_config(mail={"server": f"smtp://127.0.0.1:{silent_server}"}, policy=SHORT), "mail")
