"""The parts without gpu-culler: whether the Hub, the kernels, the card and the mailbox do what the tests rely on."""

import json
import smtplib
import ssl
import sys
from pathlib import Path

import pytest
from lab import processes
from lab.stories import crunch_and_leave, forget_and_leave, train_and_leave
from lab.waiting import eventually
from mail_server import PASSWORD, USER

STAND_IN = [sys.executable, Path(__file__).with_name("stand_in.py")]


def test_people_hold_and_load_the_card_with_their_kernels(start_hub, arrive, card):
    hub = start_hub.with_service(STAND_IN)
    tina, nora, carl = arrive(hub, "tina", "nora", "carl")
    train_and_leave(tina)
    forget_and_leave(nora)
    crunch_and_leave(carl)

    def holders():
        devices = json.loads(card.read_text())["devices"]
        return {process["pid"]: process for device in devices for process in device["processes"]}

    def all_hold():
        return {p.kernel.process.pid for p in (tina, nora, carl)} == set(holders())

    eventually("three kernels hold three cards", all_hold)
    eventually("tina's card is loaded", lambda: holders()[tina.kernel.process.pid]["load"])
    assert [p.kernel.state() for p in (tina, nora, carl)] == ["busy", "idle", "busy"]
    assert hub.metrics("gpu_culler_sessions", verdict="idle") == 1
    assert hub.metrics("gpu_culler_sessions") == 3
    assert hub.metrics("gpu_culler_unheard_of") is None

    had = nora.processes()
    assert nora.server in had and nora.kernel.process in had
    hub.api("DELETE", "/users/nora/server")
    eventually("nora's server is gone", lambda: not nora.is_running())
    eventually("its processes are gone", lambda: not nora.processes())
    eventually("the card forgets her", lambda: nora.kernel.process.pid not in holders())
    assert tina.is_running() and carl.is_running()

    assert hub.culler_process()
    assert len(processes.of_run(hub.mark)) >= 7
    assert hub.stop() == []
    assert processes.of_run(hub.mark) == []


def test_the_mailbox_takes_mail_only_over_tls_and_after_a_login(mailbox):
    tls = ssl.create_default_context(cafile=mailbox.ca_file)
    with smtplib.SMTP("127.0.0.1", mailbox.port) as client:
        client.ehlo()
        with pytest.raises(smtplib.SMTPException):
            client.sendmail("a@example.org", ["nora@example.org"], "To: nora@example.org\r\n\r\ntoo early")
        client.starttls(context=tls)
        with pytest.raises(smtplib.SMTPAuthenticationError):
            client.login(USER, "wrong")
        client.login(USER, PASSWORD)
        client.sendmail("a@example.org", ["nora@example.org"], "To: Nora <nora@example.org>\r\n\r\nhello")
    (received,) = mailbox.to("nora@example.org")
    assert received.get_content().strip() == "hello"
    assert mailbox.to("tina@example.org") == []
