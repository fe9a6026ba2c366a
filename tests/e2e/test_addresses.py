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
