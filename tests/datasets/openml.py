"""A server on this machine in the place of OpenML."""

from __future__ import annotations

import hashlib
import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import chain

from sklearn.datasets import _openml

from karnet.datasets import DATASETS


def plausible(name):
    """Return a header and rows of text with the shape, though not the content, of a set."""
    data = DATASETS[name]
    sizes = data.class_sizes
    labels = list(chain.from_iterable([f"c{k}"] * size for k, size in enumerate(sizes)))
    n = data.here.features
    rows = [[*(str((i * k) % 5) for k in range(1, n + 1)), label] for i, label in enumerate(labels)]
    return [*(f"f{k}" for k in range(n)), "target"], rows


class StandIn:
    """What OpenML would answer, by path, and which paths were asked for."""

    def __init__(self, url):
        self.url, self.pages, self.asked = url, {}, []

    def offer(self, name, header, rows, *, nominal=(), md5=None):
        """Let the server have a table under the id that is pinned for a data set."""
        did = DATASETS[name].openml
        file = f"data/v1/download/{did}"
        kinds = ["nominal" if column in nominal else "numeric" for column in header]
        arff = as_arff(header, kinds, rows)
        self.pages[file] = arff
        self.pages[f"api/v1/json/data/{did}"] = answer(
            "data_set_description",
            id=str(did),
            name=name,
            version="1",
            format="ARFF",
            status="active",
            description="",
            file_id=str(did),
            url=f"{self.url}/{file}",
            md5_checksum=md5 or hashlib.md5(arff).hexdigest(),
        )
        features = [
            {
                "index": str(k),
                "name": column,
                "data_type": kind,
                "is_target": str(column == "target").lower(),
                "is_ignore": "false",
                "is_row_identifier": "false",
                "number_of_missing_values": "0",
            }
            for k, (column, kind) in enumerate(zip(header, kinds, strict=True))
        ]
        self.pages[f"api/v1/json/data/features/{did}"] = answer("data_features", feature=features)
        quality = [{"name": "NumberOfInstances", "value": str(len(rows))}]
        self.pages[f"api/v1/json/data/qualities/{did}"] = answer("data_qualities", quality=quality)


def as_arff(header, kinds, rows):
    """Return the file that OpenML keeps of a table."""
    lines = ["@RELATION table"]
    for k, (column, kind) in enumerate(zip(header, kinds, strict=True)):
        values = sorted({row[k] for row in rows} - {""})
        declared = "{" + ",".join(values) + "}" if kind == "nominal" else "NUMERIC"
        lines.append(f"@ATTRIBUTE {column} {declared}")
    return "\n".join([*lines, "@DATA", *(",".join(c or "?" for c in row) for row in rows)]).encode()


def answer(key, **content):
    return json.dumps({key: content}).encode()


def server_in_place_of_openml(monkeypatch):
    """Return a server, yet to be run, that scikit-learn now asks, and what it answers."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            path = self.path.lstrip("/")
            stand_in.asked.append(path)
            page = stand_in.pages.get(path)
            # OpenML says with this code that it has no such data set.
            self.send_response(412 if page is None else 200)
            self.end_headers()
            self.wfile.write(page or b"")

        def log_message(self, *arguments):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    stand_in = StandIn(f"http://127.0.0.1:{server.server_port}")
    for constant, address in list(vars(_openml).items()):
        if isinstance(address, str) and address.startswith("https://"):
            path = address.split("/", 3)[3]
            monkeypatch.setattr(_openml, constant, f"{stand_in.url}/{path}")
    monkeypatch.setattr("sklearn.datasets._openml.time.sleep", lambda seconds: None)
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.delenv("KARNET_DATA", raising=False)
    return server, stand_in
