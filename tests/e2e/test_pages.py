"""The pages on a real Hub: in a real browser, and what a visitor without one may try."""

import json
import re

import jsonschema
import pytest
import requests
from browser import Browser
from lab import mail
from lab.hub import REPOSITORY
from lab.page import visible_text
from lab.stories import forget_and_leave, train_and_leave
from lab.visitor import Visitor
from lab.waiting import eventually, holds

PICTURES = REPOSITORY / "target" / "screenshots"
LOOKS = [(1200, False), (1200, True), (390, False)]  # a desk, a desk at night, a phone


@pytest.fixture
def browser(tmp_path):
    with Browser(tmp_path / "chromium") as window:
        yield window


class Reader:
    """Somebody who follows links in a browser, and logs in where the Hub asks for it."""

    def __init__(self, browser, name):
        self.browser = browser
        self.name = name

    def follow(self, url, title):
        """Opens an address, through the Hub's form where that comes up, until the page with this title is there."""
        self.browser.go(url)
        fill_in = f"""(() => {{
            const form = document.querySelector("form[action*=login]");
            if (!form || form.dataset.sent) return;
            form.querySelector("[name=username]").value = {json.dumps(self.name)};
            form.querySelector("[name=password]").value = "demo";
            form.dataset.sent = "yes";
            form.submit();
        }})()"""

        def there():
            self.browser.ask(fill_in)
            return title in (self.browser.ask("document.querySelector('main h1')?.innerText") or "")

        eventually(f"{self.name} sees {title}", there, within=30)

    def text(self):
        return self.browser.ask("document.querySelector('main').innerText") or ""

    def picture(self, name, looks=LOOKS):
        """Keeps how the page looks; no page is wider than its screen."""
        for width, dark in looks:
            self.browser.screenshot(PICTURES / f"{name}-{width}{'-dark' if dark else ''}.png", width, dark)
            too_wide = self.browser.ask("document.documentElement.scrollWidth - document.documentElement.clientWidth")
            assert too_wide <= 0, f"{name} is {too_wide} pixels wider than {width}"

    def press(self, selector):
        assert self.browser.ask(f"(() => {{ const e = document.querySelector({json.dumps(selector)}); e?.click(); return !!e; }})()")


def test_the_mails_link_leads_to_the_session_and_keep_moves_the_deadline(
    start_hub, culler_config, arrive, mailbox, browser
):
    prices = {"rates": [{"gpu_model": "*A100*", "per_hour": 2.1}]}
    hub = start_hub(culler_config(policy={"grace": "10m"}, cost=prices))
    nora, tina = arrive(hub, "nora", "tina")
    forget_and_leave(nora)
    train_and_leave(tina)
    eventually("nora is warned", lambda: mailbox.to(nora.address), within=60)
    (link,) = re.findall(r"http://\S+/services/\S+", mail.plain_text(mailbox.to(nora.address)[0]))
    assert link.endswith("/services/gpu-culler/session/nora/")

    reader = Reader(browser, "nora")
    reader.follow(link, "Your default server")
    assert "Will be stopped in" in reader.text()
    assert browser.ask("document.querySelectorAll('.chart svg .mark').length") >= 2
    assert "peak" in browser.ask("document.querySelector('.chart svg').getAttribute('aria-label')") or "nothing" in browser.ask(
        "document.querySelector('.chart svg').getAttribute('aria-label')"
    )
    first = browser.ask("document.querySelector('[data-until]').innerText")
    eventually("it counts down", lambda: browser.ask("document.querySelector('[data-until]').innerText") != first)
    reader.picture("session")
    holds("to look at it is no sign of use", lambda: '"unmarked"' not in hub.log_tail(400), during=4)

    reader.follow(link.replace("nora", "tina"), "Not shown")
    assert "not yours" in reader.text()
    reader.picture("refused", LOOKS[:1])

    reader.follow(link, "Your default server")
    reader.press(".act.keep input[value='8h']")
    reader.press(".act.keep button")
    eventually("it is kept", lambda: "Kept until" in reader.text())
    assert "nora keeps it until" in reader.text() and "Will be stopped in" not in reader.text()
    reader.picture("kept", LOOKS[:1])
    eventually("the warning is taken back", lambda: 'event="unmarked"' in hub.log_tail(400), within=10)
    assert 'event="kept"' in hub.log_tail(400)

    reader.follow(f"{hub.public_url}/services/gpu-culler/", "My sessions")
    reader.picture("mine")
    reader.follow(f"{hub.public_url}/services/gpu-culler/admin", "Not shown")

    browser.go(f"{hub.public_url}/hub/logout")
    eventually("nora is out", lambda: "login" in (browser.ask("location.pathname") or ""))
    admin = Reader(browser, "admin")
    for path, title in [
        ("admin", "All sessions"),
        ("admin/cards", "Cards"),
        ("admin/exemptions", "Exemptions"),
        ("admin/log", "Log"),
        ("session/tina/", "tina"),
    ]:
        admin.follow(f"{hub.public_url}/services/gpu-culler/{path}", title)
        admin.picture(path.replace("/", "-").strip("-"))
    assert "on behalf of" in admin.text().lower()


def test_an_admin_stops_on_behalf_of_somebody_and_an_owner_their_own(start_hub, culler_config, arrive):
    hub = start_hub(culler_config(policy={"warn_after": "10m"}))
    nora, tina = arrive(hub, "nora", "tina")
    forget_and_leave(nora)
    train_and_leave(tina)
    eventually("tina computes", lambda: hub.metrics("gpu_culler_sessions", verdict="busy"), within=30)

    admin, owner = Visitor(hub, "admin"), Visitor(hub, "nora")
    asked = admin.send("stop", "session/tina/", reason="the machine is needed")
    assert "Really stop" in asked.text and tina.is_running(), "a computing server is stopped only where that is known"
    answer = owner.send("stop", "session/nora/", confirmed="yes")  # her kernel may still be starting
    assert "The server is stopped" in answer.text
    assert not nora.is_running() and not nora.processes()

    form = admin.form("stop", "session/tina/")
    answer = admin.post("stop", {**form, "reason": "the machine is needed", "confirmed": "yes"})
    assert "The server is stopped" in answer.text
    assert not tina.is_running() and not tina.processes()
    log = visible_text(admin.page("admin/log").text)
    assert "nora asked for it" in log
    assert "admin (on behalf of its owner) asked for it (“the machine is needed”)".replace("“", '"').replace("”", '"') in log


def test_a_logout_at_the_hub_ends_it_and_a_stolen_cookie_changes_nothing(start_hub, culler_config, arrive):
    hub = start_hub(culler_config(mode="observe"))
    (nora,) = arrive(hub, "nora")
    forget_and_leave(nora)
    owner = Visitor(hub, "nora")
    eventually("nora's session is shown", lambda: "act keep" in owner.page("session/nora/").text, within=30)
    assert "Hub’s home page" in owner.page("session/nora/").text, "in this mode nothing is stopped from here"
    form = owner.form("keep", "session/nora/")
    thief = requests.Session()
    thief.trust_env = False
    thief.cookies.update(owner.http.cookies)
    owner.log_out()
    url = f"{hub.public_url}/services/gpu-culler"
    kept = thief.post(f"{url}/keep", data={**form, "for": "2h"}, timeout=30)
    assert kept.status_code == 403
    assert thief.get(f"{url}/", allow_redirects=False, timeout=30).status_code == 302
    assert owner.page(allow_redirects=False).status_code == 302
    assert 'event="kept"' not in hub.log_tail(400)


def test_the_json_interface_answers_as_it_says(start_hub, culler_config, arrive, mailbox):
    hub = start_hub(culler_config(policy={"grace": "10m"}))
    (nora,) = arrive(hub, "nora")
    forget_and_leave(nora)
    eventually("nora is warned", lambda: mailbox.to(nora.address), within=60)
    description = call(hub, "GET", "/openapi.json", hub.token, None)

    sessions = call(hub, "GET", "/sessions", hub.token, description)
    assert [session["server"] for session in sessions["sessions"]] == ["nora/"]
    assert sessions["sessions"][0]["deadline"]
    assert call(hub, "GET", "/sessions", nora.token, description)["total"] == 1
    call(hub, "GET", "/sessions/nora/", nora.token, description)
    call(hub, "GET", "/sessions/nobody/", hub.token, description, status=404)
    call(hub, "GET", "/sessions/tina/", nora.token, description, status=403)
    call(hub, "GET", "/sessions", "made-up", description, status=401)
    call(hub, "POST", "/keep", nora.token, description, {"server": "nora/", "for": "3h"}, status=409)
    kept = call(hub, "POST", "/keep", nora.token, description, {"server": "nora/", "for": "2h", "reason": "a demo"})
    assert kept["outcome"] == "kept"
    call(hub, "POST", "/keep", hub.token, description, {"server": "nora/", "for": "8h"}, status=409)
    call(hub, "POST", "/freeze/lift", hub.token, description, {"reason": "looked into"}, status=409)
    call(hub, "POST", "/freeze/lift", nora.token, description, {"reason": "looked into"}, status=403)
    model = hub.api("GET", "/users/nora")["servers"][""]
    question = {"server": model, "inactive": 9000.0, "inactive_limit": 600}
    assert call(hub, "POST", "/arbiter", hub.token, description, question)["cull"] is False
    decisions = call(hub, "GET", "/decisions?server=nora/&limit=50", nora.token, description)["decisions"]
    assert {"idle", "warned", "kept"} <= {decision["event"] for decision in decisions}
    stopped = call(hub, "POST", "/stop", nora.token, description, {"server": "nora/"})
    assert stopped["outcome"] == "stopped" and not nora.is_running()


def call(hub, method, path, token, description, body=None, status=200):
    """One request, whose answer must be as described."""
    url = f"{hub.public_url}/services/gpu-culler/api/v1{path}"
    headers = {"Authorization": f"token {token}"}
    answer = hub.http.request(method, url, json=body, headers=headers, timeout=60)
    assert answer.status_code == status, answer.text
    if description:
        template = next(known for known in description["paths"] if matches(known, path.split("?")[0]))
        said = description["paths"][template][method.lower()]["responses"][str(status)]
        schema = said["content"]["application/json"]["schema"]
        jsonschema.validate(answer.json(), {**schema, "components": description["components"]})
    return answer.json()


def matches(template, path):
    return re.fullmatch(re.sub(r"\{\w+\}", "[^/]+", template), path)
