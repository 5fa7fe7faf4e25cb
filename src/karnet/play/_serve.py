"""The server: a port of this machine only, a token, and the end by an interrupt."""

from __future__ import annotations

import secrets
import socket
from collections.abc import Callable
from dataclasses import dataclass, field

import uvicorn

from ._app import application
from ._wire import Session

# The only address that is listened on: that of this machine for itself.
HOST = "127.0.0.1"
# The largest message in bytes: about that of the largest number of points.
LARGEST_MESSAGE = 2**21
# Seconds that open sockets have to close.
PATIENCE = 1


@dataclass
class Server:
    """A server for one page.

    Attributes
    ----------
    page : str
        The name of the page: "plane" or "what-if".
    session : callable
        A function that returns the state of a new tab.
    port : int
        The port; 0 for one that is free.
    token : str
        The secret that every address starts with.
    """

    page: str
    session: Callable[[], Session]
    port: int = 0
    token: str = field(default_factory=lambda: secrets.token_urlsafe(18))

    def __post_init__(self) -> None:
        try:
            self._socket = socket.create_server((HOST, self.port))
        except (OSError, OverflowError) as error:
            raise ValueError(f"port {self.port} cannot be used: give another --port.") from error
        self.port = self._socket.getsockname()[1]
        self._config = self._loaded()

    @property
    def address(self) -> str:
        """The address of the page."""
        return f"http://{HOST}:{self.port}/{self.token}/"

    def close(self) -> None:
        """Give the port back."""
        self._socket.close()

    def run(self) -> None:
        """Answer requests until an interrupt, which is raised in the end."""
        uvicorn.Server(self._config).run(sockets=[self._socket])

    def _loaded(self) -> uvicorn.Config:
        """Return the settings of uvicorn, with everything imported that it needs.

        An interrupt during an import may be lost, so all imports precede the address on the screen.
        """
        hosts = [f"{name}:{self.port}" for name in (HOST, "localhost")]
        config = uvicorn.Config(
            application(self.page, self.session, self.token, hosts),
            log_level="critical",
            access_log=False,
            lifespan="off",
            server_header=False,
            ws="websockets-sansio",
            ws_max_size=LARGEST_MESSAGE,
            ws_per_message_deflate=False,
            timeout_graceful_shutdown=PATIENCE,
        )
        config.load()
        return config
