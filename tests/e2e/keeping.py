"""Somebody logs in, looks at the own session and keeps it: the whole way through the Hub at hand."""

import html

from lab.visitor import Visitor


def log_in_and_keep(hub, person, another):
    """Keeps this person's default server for two hours from its page; another's page stays closed."""
    visitor = Visitor(hub, person.name)
    mine = html.unescape(visitor.page().text)
    assert "My sessions" in mine, mine
    assert f"session/{person.name}/" in mine and f"session/{another.name}/" not in mine, mine
    assert visitor.page(f"session/{another.name}/").status_code == 403

    kept = visitor.send("keep", f"session/{person.name}/", **{"for": "2h"})
    assert kept.status_code == 200, kept.text
    assert "Kept until" in kept.text and f"{person.name} keeps it until" in kept.text
