"""Free ports of 127.0.0.1."""

import random
import socket

# Below the range from which the kernel takes ports for outgoing connections, so none of those can slip in between.
CANDIDATES = range(20000, 30000)


def free_ports(count):
    """So many different ports on which nobody listens now."""
    found = []
    for port in random.sample(CANDIDATES, len(CANDIDATES)):
        if _is_free(port):
            found.append(port)
        if len(found) == count:
            return found
    raise RuntimeError(f"no {count} free ports between {CANDIDATES.start} and {CANDIDATES.stop}")


def _is_free(port):
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
