"""Whoever is to be warned needs an address; whoever has none is left alone."""

import json
from concurrent.futures import ThreadPoolExecutor

import pytest
from lab import mail
from lab.people import Person
from lab.stories import forget_and_leave
from lab.waiting import eventually, holds

ADMIN = "admin@example.org"


@pytest.fixture
def addresses(tmp_path):
    """Makes a file of addresses; quoted as JSON quotes it, a name is quoted as TOML wants it."""

    def write(**known):
        file = tmp_path / "addresses.toml"
        file.write_text("".join(f"{json.dumps(name)} = {json.dumps(known[name])}\n" for name in known))
        return f"map:{file}"

    return write


def test_an_odd_name_is_found_and_nobody_without_address_is_stopped(start_hub, culler_config, addresses, mailbox):
    odd = "zo\u00eb van @home"
    known = addresses(**{odd: "zoe@example.org"})
    hub = start_hub(culler_config(mail={"address": [known], "admins": [ADMIN]}))
    zoe, olga = Person(hub, odd, "second-try"), Person(hub, "olga")
    with ThreadPoolExecutor() as pool:
        list(pool.map(Person.arrive, (zoe, olga)))
    forget_and_leave(zoe)
    forget_and_leave(olga)

    (warning,) = eventually("zo\u00eb is warned", lambda: mailbox.to("zoe@example.org"), within=60)
    assert "second-try" in mail.plain_text(warning)
    eventually("her server is gone", lambda: not zoe.is_running() and not zoe.processes(), within=60)
    eventually("she is told", lambda: len(mailbox.to("zoe@example.org")) == 2)

    holds("olga's server runs on", lambda: olga.is_running() and len(olga.processes()) == 2, during=10)
    (told,) = mailbox.to(ADMIN)
    assert "SERVER olga" in mail.plain_text(told) and "zo\u00eb" not in mail.plain_text(told)
    assert len(mailbox.mails) == 3
    assert hub.metrics("gpu_culler_stops_total") == 1


def test_a_refused_address_is_told_to_the_admins_once_and_not_knocked_at_again(
    start_hub, culler_config, addresses, mailbox
):
    mailbox.unknown.add("nora@example.org")
    hub = start_hub(culler_config(mail={"address": [addresses(nora="nora@example.org")], "admins": [ADMIN]}))
    nora = Person(hub, "nora")
    nora.arrive()
    forget_and_leave(nora)

    (told,) = eventually("the admin is told", lambda: mailbox.to(ADMIN), within=60)
    text = mail.plain_text(told)
    assert "SERVER nora" in text and "550 5.1.1 no mailbox n…@example.org" in text, text
    cycles = hub.metrics("gpu_culler_cycles_total")
    eventually("three more cycles", lambda: hub.metrics("gpu_culler_cycles_total") >= cycles + 3, within=60)
    assert nora.is_running() and len(nora.processes()) == 2
    assert len(mailbox.mails) == 1 and mailbox.refusals == 1
