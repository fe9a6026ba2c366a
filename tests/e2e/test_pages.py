"""The pages on a real Hub, in a real browser and without one."""

import time
from pathlib import Path

import pytest
from browser import Browser
from lab.hub import REPOSITORY
from lab.stories import forget_and_leave, train_and_leave
from lab.visitor import Visitor
from lab.waiting import eventually

PICTURES = REPOSITORY / "target" / "screenshots"


@pytest.fixture
def browser(tmp_path):
    with Browser(tmp_path / "chromium") as window:
        yield window


def log_in(browser, hub, name):
    """Fills in the Hub's form in the browser."""
    browser.go(f"{hub.public_url}/hub/login")
    fill_in = f"""(() => {{
        const form = document.querySelector("#login-main form, form[action*=login]");
        if (!form) return false;
        form.querySelector("[name=username]").value = "{name}";
        form.querySelector("[name=password]").value = "demo";
        form.submit();
        return true;
    }})()"""
    eventually("there is a login form", lambda: browser.ask(fill_in))
    eventually("somebody is in", lambda: browser.ask("location.pathname.startsWith('/hub/') && !location.pathname.includes('login')"))


def shot(browser, name):
    for width, dark in [(1200, False), (1200, True), (390, False)]:
        browser.screenshot(PICTURES / f"{name}-{width}{'-dark' if dark else ''}.png", width, dark)


def test_look(start_hub, culler_config, arrive, mailbox, browser):
    hub = start_hub(culler_config(policy={"grace": "10m"}, cost={"rates": [{"gpu_model": "*A100*", "per_hour": 2.1}]}))
    nora, tina = arrive(hub, "nora", "tina")
    forget_and_leave(nora)
    train_and_leave(tina)
    eventually("nora is warned", lambda: mailbox.to(nora.address), within=60)
    time.sleep(30)
    log_in(browser, hub, "nora")
    service = f"{hub.public_url}/services/gpu-culler"
    browser.go(f"{service}/")
    eventually("it is there", lambda: browser.ask("document.querySelector('h1')?.innerText") == "My sessions")
    shot(browser, "mine")
    browser.go(f"{service}/session/nora/")
    eventually("it is there", lambda: browser.ask("!!document.querySelector('.act.keep')"))
    shot(browser, "session")
    browser.go(f"{service}/session/tina/")
    eventually("it is there", lambda: browser.ask("document.querySelector('h1')?.innerText") == "Not shown")
    shot(browser, "refused")
    browser.go(f"{hub.public_url}/hub/logout")
    time.sleep(1)
    log_in(browser, hub, "admin")
    for name in ["", "/cards", "/exemptions", "/log"]:
        browser.go(f"{service}/admin{name}")
        time.sleep(2)
        shot(browser, "admin" + name.replace("/", "-"))
    print(hub.log_tail(60))
