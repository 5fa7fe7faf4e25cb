"""The server answers only who knows the token, and goes on after garbage."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import warnings
from urllib.parse import urlsplit

import pytest

pytest.importorskip("starlette")
pytest.importorskip("httpx")

with warnings.catch_warnings():
    # Newer versions ask for httpx2, and work with httpx.
    warnings.simplefilter("ignore")
    from starlette.testclient import TestClient
from starlette.websockets import WebSocketDisconnect

from karnet.play import Plane, Server, application
from karnet.play._wire import unpacked

TOKEN, HOST = "secret-token", "127.0.0.1:8000"
# The client knows no host of a socket unless its address is complete.
SOCKET = f"ws://{HOST}/{TOKEN}/socket"
POINTS = [0, 0, 0, 1, 1, 0, 1, 0, 1, 0, 1, 1]


@pytest.fixture
def client():
    app = application("plane", Plane, TOKEN, [HOST])
    return TestClient(app, base_url=f"http://{HOST}", follow_redirects=False)


def answer(socket, message):
    socket.send_text(message if isinstance(message, str) else json.dumps(message))
    received = socket.receive()
    return unpacked(received.get("bytes") or received["text"])


def test_the_page_and_its_files_are_served_behind_the_token(client):
    page = client.get(f"/{TOKEN}/")
    assert page.status_code == 200
    assert "default-src 'none'" in page.headers["content-security-policy"]
    assert "script-src 'self'" in page.headers["content-security-policy"]
    for name, kind in (("style.css", "text/css"), ("plane.js", "text/javascript")):
        found = client.get(f"/{TOKEN}/{name}")
        assert found.headers["content-type"].startswith(kind)
        assert found.headers["referrer-policy"] == "no-referrer"
    assert client.get(f"/{TOKEN}").headers["location"] == f"/{TOKEN}/"
    for name in ("__init__.py", "..%2f__init__.py", "nothing", "a/b"):
        assert client.get(f"/{TOKEN}/{name}").status_code == 404


@pytest.mark.parametrize("path", ["/", "/wrong/", "/secret-toke/", "/secret-token2/", "//", "/é/"])
def test_a_wrong_token_is_refused(client, path):
    assert client.get(path).status_code == 403
    with pytest.raises(WebSocketDisconnect), client.websocket_connect(f"ws://{HOST}{path}socket"):
        pass


@pytest.mark.parametrize(
    "headers",
    [
        {"host": "example.org"},
        {"host": "example.org:8000"},
        {"host": "127.0.0.1:9000"},
        {"origin": "http://example.org"},
        {"origin": "https://127.0.0.1:8000"},
        {"origin": "null"},
    ],
    ids=str,
)
def test_foreign_origins_and_hosts_are_refused(client, headers):
    assert client.get(f"/{TOKEN}/", headers=headers).status_code == 403
    with pytest.raises(WebSocketDisconnect):
        client.websocket_connect(SOCKET, headers=headers).__enter__()


def test_the_own_origin_is_allowed(client):
    headers = {"origin": f"http://{HOST}"}
    with client.websocket_connect(SOCKET, headers=headers) as socket:
        values, arrays = answer(socket, {"kind": "fit", "id": 3, "points": POINTS, "grid": 16})
    assert (values["id"], values["n"]) == (3, 4)
    assert arrays["surface"].shape == (2, 16, 16)


def test_garbage_gets_a_sentence_and_the_next_message_an_answer(client):
    with client.websocket_connect(SOCKET) as socket:
        for text in ("", "{", "[1]", "[" * 50_000, '{"kind": "dance"}', '{"kind": {"a": []}}'):
            values, _ = answer(socket, text)
            assert values["error"]
            assert "Traceback" not in values["error"]
        socket.send_bytes(b"\x00\xff")
        assert "JSON object" in json.loads(socket.receive()["text"])["error"]
        assert answer(socket, {"kind": "fit", "points": POINTS, "grid": 16})[0]["n"] == 4


def test_only_the_newest_request_is_fitted(client):
    slow = {"kind": "fit", "points": POINTS, "grid": 128, "model": {"model": "cv"}}
    with client.websocket_connect(SOCKET) as socket:
        for k in range(1, 31):
            socket.send_text(json.dumps(slow | {"id": k}))
        seen = []
        while 30 not in seen:
            seen.append(unpacked(socket.receive()["bytes"])[0]["id"])
    assert seen == sorted(seen)
    assert len(seen) < 10


def test_tabs_have_states_of_their_own(client):
    fit = {"kind": "fit", "grid": 16}
    with client.websocket_connect(SOCKET) as one, client.websocket_connect(SOCKET) as other:
        assert answer(one, fit | {"points": POINTS})[0]["n"] == 4
        assert answer(other, fit | {"points": POINTS[:9]})[0]["n"] == 3
        assert answer(one, fit | {"points": POINTS[3:]})[0]["n"] == 3


def test_a_port_that_is_taken_is_refused_with_a_sentence():
    server = Server("plane", Plane)
    assert urlsplit(server.address).hostname == "127.0.0.1"
    assert len(server.token) >= 24
    with pytest.raises(ValueError, match="give another --port"):
        Server("plane", Plane, server.port)
    server.close()


@pytest.mark.skipif(os.name == "nt", reason="signals are those of Unix")
def test_an_interrupt_ends_the_command():
    command = [sys.executable, "-c", "from karnet.cli import main; main()", "play", "--no-browser"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout.readline().startswith("http://127.0.0.1:")
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=20)
    assert process.returncode == 0
    assert "Traceback" not in errors
