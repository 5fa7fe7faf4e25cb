"""The web application: its pages, its socket, and the guard before both.

The token is the first part of every path, so that the links of a page, which are relative, have it
too. A request without the token is refused, and so is one that comes from a page of another site,
or that asked for another host.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Collection
from contextlib import suppress
from functools import partial
from importlib.resources import files
from queue import SimpleQueue
from threading import Thread
from typing import Any

from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route, WebSocketRoute
from starlette.types import ASGIApp, Receive, Scope, Send
from starlette.websockets import WebSocket, WebSocketDisconnect

from ._wire import GarbageError, Session, parsed, reply

# The code with which a socket is closed that is not allowed.
POLICY_VIOLATION = 1008
# The types of the files of a page.
TYPES = {"html": "text/html", "css": "text/css", "js": "text/javascript"}
# Nothing but this server is asked, and nothing but its files is run.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


class Guard:
    """The application behind a token, for some hosts and their own pages only."""

    def __init__(self, app: ASGIApp, token: str, hosts: Collection[str]) -> None:
        self.app, self.token, self.hosts = app, token.encode(), frozenset(hosts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, without the token in its path, or refuse it."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        _, first, *rest = [*scope["path"].split("/", 2), "", ""][:4]
        if not self._is_known(Headers(scope=scope), first):
            await _refuse(scope, receive, send)
        elif scope["type"] == "http" and scope["path"].count("/") == 1:
            await RedirectResponse(f"/{first}/", headers=HEADERS)(scope, receive, send)
        else:
            path = f"/{rest[0]}"
            inner = {**scope, "path": path, "raw_path": path.encode(), "root_path": ""}
            await self.app(inner, receive, send)

    def _is_known(self, headers: Headers, token: str) -> bool:
        origin = headers.get("origin")
        own = origin is None or origin in {f"http://{host}" for host in self.hosts}
        same = secrets.compare_digest(token.encode(errors="replace"), self.token)
        return same and own and headers.get("host", "") in self.hosts


async def _refuse(scope: Scope, receive: Receive, send: Send) -> None:
    if scope["type"] == "websocket":
        await send({"type": "websocket.close", "code": POLICY_VIOLATION, "reason": "refused"})
        return
    text = "Refused: open the address that 'karnet play' has printed.\n"
    await PlainTextResponse(text, 403, HEADERS)(scope, receive, send)


class Worker:
    """A thread that runs one function after the other, and does not keep the process alive."""

    def __init__(self) -> None:
        self._tasks: SimpleQueue[tuple[asyncio.Future[Any], Callable[[], Any]]] = SimpleQueue()
        Thread(target=self._work, name="karnet play", daemon=True).start()

    async def run(self, function: Callable[[], Any]) -> Any:
        """Return the result of a function that runs in the thread."""
        future = asyncio.get_running_loop().create_future()
        self._tasks.put((future, function))
        return await future

    def _work(self) -> None:
        while True:
            future, function = self._tasks.get()
            if future.cancelled():
                continue
            result = function()
            with suppress(RuntimeError):  # the loop has ended meanwhile
                future.get_loop().call_soon_threadsafe(_finish, future, result)


def _finish(future: asyncio.Future[Any], result: Any) -> None:
    if not future.cancelled():
        future.set_result(result)


class Mailbox:
    """The newest message of each kind: older ones that nobody has read are dropped."""

    def __init__(self) -> None:
        self._newest: dict[Any, Any] = {}
        self._arrived = asyncio.Event()

    def put(self, text: str | None) -> None:
        """Keep a message until it is read or a newer one of its kind arrives."""
        try:
            message: Any = parsed(text)
            kind = str(message.get("kind"))[:20]
        except GarbageError as error:
            message, kind = error, ""
        self._newest[kind] = message
        self._arrived.set()

    async def take(self) -> Any:
        """Return the message that has waited longest."""
        while not self._newest:
            self._arrived.clear()
            await self._arrived.wait()
        return self._newest.pop(next(iter(self._newest)))


def application(
    page: str, session: Callable[[], Session], token: str, hosts: Collection[str]
) -> ASGIApp:
    """Return the application that shows a page, with a session for each tab.

    Parameters
    ----------
    page : str
        The name of the page: "plane" or "what-if".
    session : callable
        A function that returns the state of a new tab.
    token : str
        The secret that every address starts with.
    hosts : collection of str
        The hosts, with ports, under which the server may be reached.

    Returns
    -------
    ASGI application
    """
    worker = Worker()
    folder = files("karnet.play") / "static"
    contents = {each.name: each.read_bytes() for each in folder.iterdir()}

    async def file(request: Request) -> Response:
        name = request.path_params.get("name") or f"{page}.html"
        if name not in contents:
            return PlainTextResponse("There is no such file.\n", 404, HEADERS)
        kind = TYPES.get(name.rpartition(".")[2], "application/octet-stream")
        return Response(contents[name], headers=HEADERS, media_type=kind)

    async def socket(websocket: WebSocket) -> None:
        await websocket.accept()
        box, state = Mailbox(), session()
        answers = asyncio.create_task(_answer_all(websocket, box, state, worker))
        try:
            while (event := await websocket.receive())["type"] == "websocket.receive":
                box.put(event.get("text"))
        finally:
            answers.cancel()

    routes = [Route("/", file), WebSocketRoute("/socket", socket), Route("/{name}", file)]
    return Guard(Starlette(routes=routes), token, hosts)


async def _answer_all(websocket: WebSocket, box: Mailbox, state: Session, worker: Worker) -> None:
    """Answer one message after the other until the socket is closed."""
    with suppress(WebSocketDisconnect, RuntimeError):
        while True:
            message = await box.take()
            answer = await worker.run(partial(reply, state, message))
            if isinstance(answer, bytes):
                await websocket.send_bytes(answer)
            else:
                await websocket.send_text(answer)
