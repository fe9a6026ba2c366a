"""Somebody logs in, looks at the own session and keeps it: the whole way through the Hub at hand."""

from lab.visitor import Visitor


def log_in_and_keep(hub, person, another):
    """Keeps this person's default server for two hours from its page; another's page stays closed."""
    visitor = Visitor(hub, person.name)
    mine = visitor.page()
    assert mine.status_code == 200 and "My sessions" in mine.text, mine.text
    assert f"session/{person.name}/" in mine.text and f"session/{another.name}/" not in mine.text
    assert visitor.page(f"session/{another.name}/").status_code == 403

    kept = visitor.send("keep", f"session/{person.name}/", **{"for": "2h"})
    assert kept.status_code == 200, kept.text
    assert "Kept until" in kept.text and f"{person.name} keeps it until" in kept.text
