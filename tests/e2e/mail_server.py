"""A real SMTP server that asks for TLS and a login, as a mail relay does."""

import ssl
import time
from email.utils import getaddresses

import trustme
from aiosmtpd.controller import Controller
from aiosmtpd.smtp import SMTP, AuthResult
from lab import mail
from lab.ports import free_ports

USER, PASSWORD = "gpu-culler", "correct horse battery"


class Mailbox:
    """Keeps the accepted mails in the order they came."""

    def __init__(self, directory):
        self.mails = []
        self.unknown = set()
        self.refusals = 0
        self.ca_file = directory / "mail-ca.pem"
        self.password_file = directory / "mail-password"
        self.password_file.write_text(PASSWORD + "\n")
        self.password_file.chmod(0o600)
        authority = trustme.CA()
        authority.cert_pem.write_to_path(self.ca_file)
        self._tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        authority.issue_cert("127.0.0.1", "localhost").configure_cert(self._tls)
        (self.port,) = free_ports(1)
        self._controller = _Controller(self, hostname="127.0.0.1", port=self.port)

    def __enter__(self):
        self._controller.start()
        return self

    def __exit__(self, *_):
        self._controller.stop()

    def settings(self):
        """The [mail] section that reaches it."""
        return {
            "server": f"smtp://127.0.0.1:{self.port}",
            "username": USER,
            "password_file": str(self.password_file),
            "ca_file": str(self.ca_file),
        }

    def to(self, address):
        """The mails to this address."""
        return [m for m in self.mails if address in (a for _, a in getaddresses(m.get_all("To", [])))]

    def warnings(self):
        """The mails that are no answers to earlier ones."""
        return [m for m in self.mails if not m["In-Reply-To"]]

    # What aiosmtpd calls.

    async def handle_RCPT(self, _server, _session, envelope, address, _options):  # noqa: N802
        if address in self.unknown:
            self.refusals += 1
            return f"550 5.1.1 no mailbox {address}"
        envelope.rcpt_tos.append(address)
        return "250 2.1.5 fine"

    async def handle_DATA(self, server, session, envelope):  # noqa: N802
        received = mail.parse(envelope.original_content)
        received.received_at = time.time()
        received.recipients = list(envelope.rcpt_tos)
        self.mails.append(received)
        return "250 2.0.0 accepted"

    def smtp(self):
        return SMTP(
            self,
            hostname="mailbox.test",
            tls_context=self._tls,
            require_starttls=True,
            auth_required=True,
            authenticator=_check_login,
        )


class _Controller(Controller):
    def factory(self):
        return self.handler.smtp()


def _check_login(_server, _session, _envelope, _mechanism, login):
    right = (login.login, login.password) == (USER.encode(), PASSWORD.encode())
    return AuthResult(success=right, handled=False)
