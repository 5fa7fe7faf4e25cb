"""Refuse and record connections to other hosts.

`python -m tests.offline COMMAND ...` runs karnet's command line without a network.
"""

from __future__ import annotations

import ipaddress
import socket
import sys

# Connections that were refused.
ASKED: list[str] = []
# Positions of the address in the arguments of audit events that connect or send.
SENT = {"socket.connect": 1, "socket.sendto": 1, "socket.sendmsg": 1}
# Positions of the name in the arguments of audit events that look up a name.
LOOKED_UP = {"socket.getaddrinfo": 0, "socket.gethostbyname": 0, "socket.gethostbyaddr": 0}


class NetworkForbiddenError(OSError):
    """A connection to another host was refused."""


def is_here(host: object) -> bool:
    """Return whether a host is this machine."""
    if host in (None, "", "localhost", socket.gethostname()):
        return True
    try:
        return ipaddress.ip_address(str(host)).is_loopback
    except ValueError:
        return False


def is_number(host: object) -> bool:
    """Return whether a host is an address, which needs no look-up."""
    try:
        return bool(ipaddress.ip_address(str(host)))
    except ValueError:
        return False


def forbid_network() -> None:
    """Refuse connections to other hosts until the process ends."""

    def refuse(event: str, arguments: tuple) -> None:
        if event in SENT:
            address = arguments[SENT[event]]
            # The address of a Unix domain socket is a path.
            refused = isinstance(address, tuple) and not is_here(address[0])
        elif event in LOOKED_UP:
            address = arguments[LOOKED_UP[event]]
            refused = not is_here(address) and not is_number(address)
        else:
            return
        if refused:
            ASKED.append(f"{event} {address}")
            raise NetworkForbiddenError(f"{event}: {address} is not this machine.")

    sys.addaudithook(refuse)


if __name__ == "__main__":
    forbid_network()
    from karnet.cli import main

    main(sys.argv[1:])
