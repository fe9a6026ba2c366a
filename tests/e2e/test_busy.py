"""Whatever still works keeps its server, although the card rests and nobody is there."""

import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from lab import mail
from lab.stories import forget_and_leave
from lab.waiting import eventually, holds
from working import BURN, Repeating, Terminal, explain, get, hold

WARN_AFTER, LATE = 8, 12  # seconds
QUIET = 3 * WARN_AFTER
LIMITS = {"warn_after": f"{WARN_AFTER}s", "grace": "60s"}


def test_kernels_and_terminals_that_work_unattended(start_hub, culler_config, arrive, mailbox):
    hub = start_hub(culler_config(policy=LIMITS))
    sam, tess, nora = arrive(hub, "sam", "tess", "nora")
    # A scheduler does the same: a kernel over the API, no browser at any time.
    sam.kernel.start("import time, fake_card; fake_card.hold(gigabytes=20, card=0); time.sleep(3600)")
    sam.leave()
    hold(tess, card=1)
    tess.leave()
    terminal = Terminal(tess)
    terminal.type("while sleep 1; do echo step $((1 + 1)); done", until="step 2")
    terminal.leave()
    forget_and_leave(nora)

    eventually("nora, who left nothing running, is warned", lambda: mailbox.to(nora.address), within=WARN_AFTER + LATE)
    holds("nobody else is", lambda: len(mailbox.mails) == 1, during=QUIET)
    assert explain(hub, sam)["verdict"] == "busy: a kernel is computing"
    told = explain(hub, tess)
    assert told["verdict"].startswith(f"busy: terminal {terminal.name} was used at ")
    assert told["use clock"].endswith(f"; moved by terminal {terminal.name}")


def test_processes_that_work_on_the_processor(start_hub, culler_config, arrive, mailbox, tmp_path):
    program = tmp_path / "burn.py"
    program.write_text(BURN)
    # Low, since two jobs, a Hub and whatever else runs here share the processors.
    hub = start_hub(culler_config(policy=LIMITS, telemetry={"cpu_busy_threshold": 0.1}))
    nick, dora = arrive(hub, "nick", "dora")
    for card, person in enumerate((nick, dora)):
        hold(person, card)
        person.leave()
    shell = Terminal(nick)
    shell.type(f"nohup {sys.executable} {program} >/dev/null 2>&1 & echo started $((1 + 1))", until="started 2")
    shell.leave()
    # Dora's job leaves the process tree of her server for good.
    shell = Terminal(dora)
    shell.type(f"(setsid nohup {sys.executable} {program} >/dev/null 2>&1 &); echo started $((1 + 1))", until="started 2")
    shell.leave()

    holds("nobody is warned", lambda: not mailbox.mails, during=QUIET)
    for person in (nick, dora):
        told = explain(hub, person)
        assert told["use clock"].endswith("; moved by CPU work of its processes"), told


def test_an_application_behind_the_servers_proxy_is_presence_and_not_use(start_hub, culler_config, arrive, mailbox):
    connected = 25
    hub = start_hub(culler_config(policy={**LIMITS, "connected_warn_after": f"{connected}s"}))
    (vera,) = arrive(hub, "vera")
    forget_and_leave(vera)
    # As VS Code in a browser: traffic to an application in the server, and no kernel that anybody uses.
    with ThreadingHTTPServer(("127.0.0.1", 0), Editor) as editor:
        threading.Thread(target=editor.serve_forever, daemon=True).start()
        page = f"proxy/{editor.server_port}/"
        assert get(vera, page).text == "an editor"
        with Repeating(lambda: get(vera, page)):
            holds("vera is not warned while she is there", lambda: not mailbox.mails, during=connected - 5)
            assert explain(hub, vera)["verdict"].startswith("busy: somebody was there at ")
            eventually("vera is warned by the other limit", lambda: mailbox.to(vera.address), within=LATE)
        editor.shutdown()
    text = " ".join(mail.plain_text(mailbox.mails[0]).split())
    assert "Somebody is still connected, but an open browser tab alone does not count as use." in text


class Editor(BaseHTTPRequestHandler):
    """An application that answers."""

    def do_GET(self):  # noqa: N802
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"an editor")

    def log_message(self, *_):
        pass


def test_requests_to_a_server_are_presence_and_not_use(start_hub, culler_config, arrive, mailbox):
    connected = 25
    hub = start_hub(culler_config(policy={**LIMITS, "connected_warn_after": f"{connected}s"}))
    (gwen,) = arrive(hub, "gwen")
    forget_and_leave(gwen)
    with Repeating(lambda: get(gwen, "api/contents")):
        holds("gwen is not warned while she is there", lambda: not mailbox.mails, during=connected - 3)
        eventually("gwen is warned by the other limit", lambda: mailbox.to(gwen.address), within=LATE)
    text = " ".join(mail.plain_text(mailbox.mails[0]).split())
    assert "Somebody is still connected, but an open browser tab alone does not count as use." in text
