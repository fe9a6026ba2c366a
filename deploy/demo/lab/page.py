"""Reading web pages."""

from html.parser import HTMLParser


def visible_text(html):
    """The words of a page that a person sees, a line for each piece."""
    page = _Words()
    page.feed(html)
    return "\n".join(page.lines)


class _Words(HTMLParser):
    HIDDEN = ("style", "script", "head")

    def __init__(self):
        super().__init__()
        self.lines, self.hidden = [], 0

    def handle_starttag(self, tag, attributes):
        self.hidden += tag in self.HIDDEN

    def handle_endtag(self, tag):
        self.hidden -= tag in self.HIDDEN

    def handle_data(self, data):
        if not self.hidden and data.strip():
            self.lines.append(" ".join(data.split()))
