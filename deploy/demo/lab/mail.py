"""Reading mails."""

from email import message_from_bytes, policy


def parse(content):
    """A mail from its bytes, headers decoded."""
    return message_from_bytes(content, policy=policy.default)


def plain_text(mail):
    """The decoded text that a person reads."""
    return mail.get_body(preferencelist=("plain",)).get_content()
