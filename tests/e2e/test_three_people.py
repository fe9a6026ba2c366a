"""What the service is for: of three sessions only the abandoned one is stopped, and its owner knew before."""

import re
from datetime import datetime, timedelta, timezone

from lab import mail
from lab.people import Person
from lab.processes import is_alive
from lab.stories import crunch_and_leave, forget_and_leave, train_and_leave
from lab.waiting import eventually, holds

GRACE = 20  # seconds, as in culler_config


def test_only_the_abandoned_session_is_stopped_and_only_after_a_warning(start_hub, culler_config, arrive, mailbox):
    hub = start_hub(culler_config())
    tina, nora, carl = arrive(hub, "tina", "nora", "carl")
    train_and_leave(tina)
    forget_and_leave(nora)
    crunch_and_leave(carl)

    eventually("nora is warned", lambda: mailbox.to(nora.address), within=60)
    assert nora.is_running(), "warned and stopped in one breath"
    gone_at = eventually("nora's server is gone from the Hub", lambda: not nora.is_running() and now(), within=60)
    eventually("so are its processes", lambda: not nora.processes())

    def others_go_on():
        return all(person.is_running() and is_alive(person.kernel.process) for person in (tina, carl))

    holds("tina and carl compute on", others_go_on, during=15)
    warning, stopped = mailbox.mails
    accepted_at = datetime.fromtimestamp(warning.received_at, timezone.utc)
    assert gone_at - accepted_at >= timedelta(seconds=GRACE), "stopped before the promised time"
    assert hub.metrics("gpu_culler_warnings_total") == 1
    assert hub.metrics("gpu_culler_stops_total") == 1
    check_warning(warning, nora, deadline=accepted_at + timedelta(seconds=GRACE))
    check_told(stopped, nora, warning)


def check_warning(warning, nora: Person, deadline):
    """It reaches its reader, is no answer-me mail, and says which server, which card, and until when."""
    assert warning.recipients == [nora.address]
    assert nora.address in warning["To"]
    assert warning["Auto-Submitted"] == "auto-generated"
    assert re.search("GPU|A100", warning["Subject"])
    text = mail.plain_text(warning)
    assert "A100" in text
    assert "nora" in text
    promised = {f"{deadline + timedelta(minutes=around):%H:%M}" for around in (0, 1)}
    assert any(time in text for time in promised), f"none of {promised} in:\n{text}"


def check_told(stopped, nora: Person, warning):
    """It answers the warning, and tells what is lost and what is not."""
    assert stopped.recipients == [nora.address]
    assert stopped["In-Reply-To"] == warning["Message-ID"]
    assert "stopped" in stopped["Subject"]
    assert "Not lost: your files" in mail.plain_text(stopped)


def now():
    return datetime.now(timezone.utc)
