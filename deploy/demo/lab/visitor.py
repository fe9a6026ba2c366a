"""Somebody who looks at the service's pages, with a browser's cookies and without a browser."""

import html
import re

import requests


class Visitor:
    """A person who is logged in at the Hub; the service then lets them in without a question."""

    def __init__(self, hub, name, password="demo"):
        self.hub = hub
        self.name = name
        self.http = requests.Session()
        self.http.trust_env = False
        self.log_in(password)

    def log_in(self, password="demo"):
        """Fills in the Hub's form."""
        url = f"{self.hub.public_url}/hub/login"
        self.http.get(url, timeout=30)
        xsrf = self.http.cookies.get("_xsrf", path="/hub/")
        form = {"username": self.name, "password": password, "_xsrf": xsrf}
        answer = self.http.post(url, data=form, timeout=30, allow_redirects=False)
        assert answer.status_code == 302, f"{self.name} could not log in: {answer.status_code}"

    def log_out(self):
        """Leaves the Hub."""
        self.http.get(f"{self.hub.public_url}/hub/logout", timeout=30)

    def page(self, path="", **arguments):
        """A page of the service; a visit to the Hub on the way goes by itself."""
        return self.http.get(f"{self.hub.public_url}/services/gpu-culler/{path}", timeout=30, **arguments)

    def form(self, action, page=""):
        """The fields of the form on this page that goes there, as they stand."""
        text = html.unescape(self.page(page).text)
        form = re.search(rf'<form[^>]*action="[^"]*/{action}">.*?</form>', text, re.DOTALL)
        assert form, f"no form for {action} on {page}"
        return dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)"', form.group()))

    def send(self, action, page="", **fields):
        """Sends that form with these fields."""
        data = {**self.form(action, page), **fields}
        return self.post(action, data)

    def post(self, action, data, **arguments):
        """Posts to the service."""
        url = f"{self.hub.public_url}/services/gpu-culler/{action}"
        return self.http.post(url, data=data, timeout=90, **arguments)
