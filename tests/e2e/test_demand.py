"""Somebody waits for a card, as a real Prometheus tells: the longest idle session is given back first."""

import shutil
import subprocess
from contextlib import contextmanager

import pytest
import requests
from lab import mail
from lab.ports import free_ports
from lab.stories import forget_and_leave
from lab.waiting import eventually, holds

PATIENT = {"warn_after": "20m", "grace": "10s"}


@contextmanager
def prometheus(directory):
    """A real one that scrapes nothing; its address."""
    if not shutil.which("prometheus"):
        pytest.skip("needs Prometheus: run tests/make-prometheus.sh")
    (port,) = free_ports(1)
    config = directory / "prometheus.yml"
    config.write_text("{}")
    words = ["prometheus", f"--config.file={config}", f"--storage.tsdb.path={directory / 'prometheus'}"]
    words = ["setpriv", "--pdeathsig", "KILL", *words, f"--web.listen-address=127.0.0.1:{port}"]
    with open(directory / "prometheus.log", "w") as log, subprocess.Popen(words, stdout=log, stderr=log) as server:
        try:
            url = f"http://127.0.0.1:{port}"
            eventually("Prometheus is ready", lambda: answers(f"{url}/-/ready"))
            yield url
        finally:
            server.terminate()


def answers(url):
    try:
        with requests.Session() as http:
            http.trust_env = False
            return http.get(url, timeout=2).ok
    except requests.RequestException:
        return False


def demand(url, promql):
    return {"promql": promql, "prometheus": {"url": url, "proxy": "none"}}


def test_the_longest_idle_is_given_back_first_and_no_more_than_wait(
    start_hub, culler_config, arrive, mailbox, tmp_path
):
    with prometheus(tmp_path) as url:
        waiting = {**PATIENT, "when_waiting": {"warn_after": "15s"}}
        hub = start_hub(culler_config(policy=waiting, demand=demand(url, "sum(vector(1))")))
        nora, mia = arrive(hub, "nora", "mia")
        forget_and_leave(nora)
        holds("mia works on", lambda: mia.kernel.run("print(1)"), during=8)
        forget_and_leave(mia)
        eventually("nora is warned", lambda: mailbox.to(nora.address), within=60)
        assert hub.metrics("gpu_culler_waiting") == 1
        eventually("nora's server is gone", lambda: not nora.is_running(), within=60)
        assert not mailbox.to(mia.address), "one waits, and one has gone"
        assert mia.is_running()
        eventually("nora is told", lambda: len(mailbox.to(nora.address)) == 2)
        for told in mailbox.to(nora.address):
            assert "Somebody is waiting for a GPU, so the time is shorter than usual." in mail.plain_text(told)


def test_while_nobody_can_tell_who_waits_the_usual_limits_hold_and_check_says_why(
    start_hub, culler_config, arrive, mailbox, gpu_culler, tmp_path
):
    with prometheus(tmp_path) as url:
        waiting = {**PATIENT, "when_waiting": {"warn_after": "5s"}}
        config = culler_config(policy=waiting, demand=demand(url, "no_such_metric"))
        hub = start_hub(config)
        (nora,) = arrive(hub, "nora")
        forget_and_leave(nora)
        problem = "who waits for a card is not known: `no_such_metric` gives nothing"
        eventually("its trouble is told", lambda: problem in hub.log_tail(400))
        holds("nora is left alone", lambda: nora.is_running() and not mailbox.mails, during=12)
        lines = gpu_culler(hub, config, "check", "--format", "json").lines()
        (found,) = [line for line in lines if line["what"] == "demand"]
        assert found["grade"] == "wrong"
        assert 'add "or vector(0)"' in found["words"]
