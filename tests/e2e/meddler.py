"""A proxy in front of the Hub's API that changes its answers, or does something before it passes a request on."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import requests


class Meddler:
    """Passes requests on to `target` after `before(method, path)`, and JSON answers through `change(path, answer)`."""

    def __init__(self, change=lambda path, answer: answer, before=lambda method, path: None):
        self.change = change
        self.before = before
        self.target = None
        self._http = requests.Session()
        self._http.trust_env = False
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self.api_url = f"http://127.0.0.1:{self._server.server_port}/hub/api"
        self._thread = threading.Thread(target=self._server.serve_forever)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def answer(self, method, path, headers):
        """Status and body of the Hub's answer, changed."""
        if not self.target:
            return 503, b""
        self.before(method, path)
        kept = {name: headers[name] for name in ("Authorization", "Accept") if name in headers}
        answer = self._http.request(method, self.target + path, headers=kept, timeout=20)
        if not answer.content:
            return answer.status_code, b""
        return answer.status_code, json.dumps(self.change(path, answer.json())).encode()


def _handler(meddler):
    class Handler(BaseHTTPRequestHandler):
        def do(self):
            status, body = meddler.answer(self.command, self.path, self.headers)
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_POST = do_DELETE = do  # noqa: N815

        def log_message(self, *_):
            pass

    return Handler
