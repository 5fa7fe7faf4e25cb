"""No network but the machine's own: whoever asks for another host is refused, and it is noted.

`python -m tests.offline COMMAND ...` runs karnet's command line that way.
"""

from __future__ import annotations

import ipaddress
import socket
import sys

ASKED: list[str] = []
# Where the address is among what Python says before it sends, and the name before it looks it up.
SENT = {"socket.connect": 1, "socket.sendto": 1, "socket.sendmsg": 1}
LOOKED_UP = {"socket.getaddrinfo": 0, "socket.gethostbyname": 0, "socket.gethostbyaddr": 0}


class NetworkForbiddenError(OSError):
    """Another host was asked for."""


def is_here(host: object) -> bool:
    """Return whether a host is this machine."""
    if host in (None, "", "localhost", socket.gethostname()):
        return True
    try:
        return ipaddress.ip_address(str(host)).is_loopback
    except ValueError:
        return False


def is_number(host: object) -> bool:
    """Return whether a host is an address already, for which nobody is asked."""
    try:
        return bool(ipaddress.ip_address(str(host)))
    except ValueError:
        return False


def forbid_network() -> None:
    """Forbid other hosts, from now on and until the process ends."""

    def refuse(event: str, said: tuple) -> None:
        if event in SENT:
            address = said[SENT[event]]
            # Sockets of a file system have a path for an address.
            refused = isinstance(address, tuple) and not is_here(address[0])
        elif event in LOOKED_UP:
            address = said[LOOKED_UP[event]]
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
