#!/usr/bin/env python3
"""Mail servers with faults for the tests, on free ports of 127.0.0.1.

Usage: server.py CERTIFICATES MAILS [SECONDS]

CERTIFICATES holds good.pem/good.key (for localhost) and other.pem/other.key (for another name).
Prints one line of JSON, behaviour -> port, once every port answers; ends when stdin is closed.
Each accepted mail becomes MAILS/<behaviour>-<n>.eml; beside it MAILS/<behaviour>-<n>.json tells how
it came and what a reader sees of it. `slow` waits SECONDS (0.3) before each answer.

  plain       takes everything, offers neither TLS nor AUTH
  starttls    insists on STARTTLS, then on signing in (culler, s3cret)
  implicit    TLS from the first byte, insists on signing in
  greylist    451 for the first attempt of a sender and recipient, accepts the next
  slow        accepts, late
  silent      accepts the connection and never speaks
  dropping    hangs up when the mail has been handed over
  refusing    550 for *@bad.example, 452 for *@full.example, 421 for the sender boom@*,
              554 for the content of a mail to spam@*
  othername   offers STARTTLS with a certificate for another name
"""

import asyncio
import email
import email.policy
import json
import logging
import pathlib
import ssl
import sys
import warnings

from aiosmtpd.smtp import SMTP, AuthResult

ACCOUNT = (b"culler", b"s3cret")


def authenticate(_server, _session, _envelope, _mechanism, given):
    # `handled` would mean that the answer was already sent; the client would then wait for ever.
    return AuthResult(success=(given.login, given.password) == ACCOUNT, handled=False)


class Behaviour:
    """Takes every mail and keeps it. One object a port, so it remembers across connections."""

    def __init__(self, name, mails):
        self.name, self.mails, self.taken = name, mails, 0

    async def handle_MAIL(self, _server, _session, envelope, address, options):
        refusal = await self.on_sender(address)
        if refusal:
            return refusal
        envelope.mail_from = address
        envelope.mail_options.extend(options)
        return "250 2.1.0 sender fine"

    async def handle_RCPT(self, _server, _session, envelope, address, _options):
        refusal = await self.on_recipient(envelope.mail_from, address)
        if refusal:
            return refusal
        envelope.rcpt_tos.append(address)
        return "250 2.1.5 recipient fine"

    async def handle_DATA(self, server, session, envelope):
        refusal = await self.on_content(server, envelope)
        if refusal:
            return refusal
        self.taken += 1
        file = self.mails / f"{self.name}-{self.taken}"
        mail = email.message_from_bytes(envelope.original_content, policy=email.policy.default)

        def body(kind):
            return mail.get_body((kind,)).get_content().replace("\r\n", "\n")

        told = {
            "from": envelope.mail_from,
            "to": envelope.rcpt_tos,
            "tls": session.ssl is not None or server.transport.get_extra_info("ssl_object") is not None,
            "signed_in": bool(session.authenticated),
            "subject": mail["Subject"],
            "text": body("plain"),
            "html": body("html"),
        }
        file.with_suffix(".json").write_text(json.dumps(told))
        file.with_suffix(".eml").write_bytes(envelope.original_content)
        return f"250 2.0.0 queued as {self.taken}"

    async def on_sender(self, _address):
        return None

    async def on_recipient(self, _sender, _address):
        return None

    async def on_content(self, _server, _envelope):
        return None


class Greylist(Behaviour):
    known = frozenset()

    async def on_recipient(self, sender, address):
        if (sender, address) in self.known:
            return None
        self.known |= {(sender, address)}
        return "451 4.7.1 greylisted, come back"


class Slow(Behaviour):
    seconds = 0.3

    async def handle_EHLO(self, _server, session, _envelope, hostname, responses):
        await asyncio.sleep(self.seconds)
        session.host_name = hostname
        return responses

    async def on_sender(self, _address):
        await asyncio.sleep(self.seconds)

    async def on_recipient(self, _sender, _address):
        await asyncio.sleep(self.seconds)

    async def on_content(self, _server, _envelope):
        await asyncio.sleep(self.seconds)


class Dropping(Behaviour):
    async def on_content(self, server, _envelope):
        server.transport.abort()
        return "421 4.0.0 gone"


class Refusing(Behaviour):
    async def on_sender(self, address):
        return "421 4.3.0 closing down" if address.startswith("boom@") else None

    async def on_recipient(self, _sender, address):
        if address.endswith("@bad.example"):
            return f"550 5.1.1 <{address}>: no such user"
        return "452 4.2.2 mailbox full" if address.endswith("@full.example") else None

    async def on_content(self, _server, envelope):
        spam = any(address.startswith("spam@") for address in envelope.rcpt_tos)
        return "554 5.7.1 looks like spam" if spam else None


def tls(certificates, name):
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificates / f"{name}.pem", certificates / f"{name}.key")
    return context


async def main(certificates, mails, seconds):
    Slow.seconds = seconds
    loop = asyncio.get_running_loop()
    ports = {}

    async def serve(name, kind=Behaviour, wrapped=None, **options):
        handler = kind(name, mails)

        def connection():
            return SMTP(handler, hostname="lab.example", loop=loop, **options)

        listener = await loop.create_server(connection, "127.0.0.1", 0, ssl=wrapped)
        ports[name] = listener.sockets[0].getsockname()[1]

    async def say_nothing(reader, _writer):
        await reader.read()

    good, other = tls(certificates, "good"), tls(certificates, "other")
    account = {"authenticator": authenticate, "auth_required": True}
    await serve("plain")
    await serve("starttls", tls_context=good, require_starttls=True, **account)
    await serve("implicit", wrapped=good, auth_require_tls=False, **account)
    await serve("greylist", Greylist)
    await serve("slow", Slow)
    silent = await asyncio.start_server(say_nothing, "127.0.0.1", 0)
    ports["silent"] = silent.sockets[0].getsockname()[1]
    await serve("dropping", Dropping)
    await serve("refusing", Refusing)
    await serve("othername", tls_context=other)
    print(json.dumps(ports), flush=True)
    await loop.run_in_executor(None, sys.stdin.read)


if __name__ == "__main__":
    # Clients that hang up are the purpose here, and so is signing in without STARTTLS.
    logging.disable()
    warnings.simplefilter("ignore")
    late = float(sys.argv[3]) if len(sys.argv) > 3 else 0.3
    asyncio.run(main(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), late))
