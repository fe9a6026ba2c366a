"""A service that only answers, to prove the other parts while there is no gpu-culler."""
import os
from http.server import BaseHTTPRequestHandler, HTTPServer
from urllib.parse import urlparse


class Answer(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b'gpu_culler_sessions{verdict="busy"} 2\ngpu_culler_sessions{verdict="idle"} 1\n')


HTTPServer(("127.0.0.1", urlparse(os.environ["JUPYTERHUB_SERVICE_URL"]).port), Answer).serve_forever()
