"""Ways from gpu-culler to a single-user server other than the direct one."""

import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import requests

# Keeps the server's address out of the environment that others see, so that it is reached through the proxy only.
HIDDEN_SERVER = """
exec env -u JUPYTERHUB_SERVICE_URL HIDDEN_URL="$JUPYTERHUB_SERVICE_URL" "$0" -c '
import os
os.environ["JUPYTERHUB_SERVICE_URL"] = os.environ.pop("HIDDEN_URL")
from jupyterhub.singleuser import main
main()' "$@"
"""


def hide_servers(directory):
    """Lets the Hub that will start in this directory spawn servers which do not say where they listen."""
    command = ["/bin/sh", "-c", HIDDEN_SERVER, sys.executable]
    (directory / "more_config.py").write_text(f"c.Spawner.cmd = {command!r}\n")


class ForgetfulFront:
    """A web server before the Hub's proxy that drops ETags, so that each answer is sent whole."""

    def __enter__(self):
        self.target = None
        self.passed = 0
        front = self

        class Pass(BaseHTTPRequestHandler):
            def do_GET(self):  # noqa: N802
                headers = {"Authorization": self.headers["Authorization"], "Accept": self.headers["Accept"]}
                with requests.Session() as http:
                    http.trust_env = False
                    answer = http.get(front.target + self.path, headers=headers, timeout=10)
                front.passed += answer.status_code == 200
                self.send_response(answer.status_code)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(answer.content)))
                self.end_headers()
                self.wfile.write(answer.content)

            def log_message(self, *_):
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Pass)
        self.url = f"http://127.0.0.1:{self._server.server_port}/"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self._server.shutdown()
        self._server.server_close()
