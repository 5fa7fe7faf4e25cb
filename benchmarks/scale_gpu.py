"""Fits on a GPU compared with matrix products: ``python benchmarks/scale_gpu.py``.

A random network with 10^6 x 100 inputs, 1000 units and 10 classes is fitted in float64 to data on
the GPU, to data in host memory and, with more rows than fit there, to data from a generator. The
same run times ``H.T @ H`` and ``torch.linalg.lstsq`` on the computed hidden matrix H, and the copy
of the data to the GPU. Networks with nearly singular layers, and least squares with ill-conditioned
and rank-deficient matrices of the size of H, are timed next to the same product.

``--only cv`` times the estimator that selects all hyper-parameters, with 10^6 x 20 inputs in host
memory and 3 classes, with and without the GPU, and the computation of distances on the GPU.
"""

from __future__ import annotations

import argparse
import csv
import os
import platform
import sys
import time
from unittest.mock import patch

os.environ.setdefault("SCIPY_ARRAY_API", "1")

import numpy as np
import sklearn
import torch

import karnet
from karnet import KARClassifier, KARClassifierCV
from karnet._arrays import namespace as arrays
from karnet._arrays.devices import SETTINGS
from karnet._arrays.linalg import distances
from karnet._lstsq.solve import solve
from karnet._rows.memory import Rows
from karnet.blocks import Blocks

Q, H, D = 10, 1000, 100


def timed(function, repeats=5):
    """Return the median time of a synchronised call, after one call to warm up."""
    times = []
    for _ in range(repeats + 1):
        torch.cuda.synchronize()
        start = time.perf_counter()
        function()
        torch.cuda.synchronize()
        times.append(time.perf_counter() - start)
    return float(np.median(times[1:]))


def net(activation, **options):
    """Return the network to fit."""
    return KARClassifier(
        (H,),
        activation=activation,
        output_activation="identity",
        hidden="random",
        random_state=0,
        **options,
    )


def table(m, seed=0):
    """Return inputs and classes of m rows on the GPU."""
    torch.manual_seed(seed)
    X = torch.randn(m, D, dtype=torch.float64, device="cuda")
    return X, torch.argmax(X[:, :Q] + 0.1 * torch.randn(m, Q, device="cuda"), dim=1)


def on_the_card(m, activation):
    """Yield the time of a fit to data on the GPU, and of products of the hidden matrix."""
    X, y = table(m)
    with sklearn.config_context(array_api_dispatch=True):
        fitted = net(activation).fit(X, y)
        fit = timed(lambda: net(activation).fit(X, y))
        predict = timed(lambda: fitted.predict(X))
    hidden = fitted.activations_[0](X @ fitted.coefs_[0] + fitted.intercepts_[0])
    E = torch.nn.functional.one_hot(y, Q).double()
    product = timed(lambda: hidden.T @ hidden)
    lstsq = timed(lambda: torch.linalg.lstsq(hidden, E), 2)
    yield f"{activation}: H.T @ H", product, None
    yield f"{activation}: torch.linalg.lstsq", lstsq, None
    yield f"{activation}: fit on the card", fit, None
    yield f"{activation}: fit / H.T @ H", fit / product, "<= 1.25"
    yield f"{activation}: torch.linalg.lstsq / fit", lstsq / fit, ">= 4"
    yield f"{activation}: predict on the card", predict, None
    print(fitted.layers_[-1])


def _product(A):
    return timed(lambda: A.T @ A)


def ill_conditioned_layers(m):
    """Yield times of fits whose layers are nearly singular, over the time of ``H.T @ H``.

    Inputs are uniform on [0, 1]: many ReLU units are then active for all rows.
    """
    X, y = table(m)
    X = torch.special.ndtr(X)
    product = _product(torch.randn(m, H, dtype=torch.float64, device="cuda"))
    pullback = KARClassifier((H,), random_state=0)
    for name, network in (("random ReLU", net("relu")), ("pull-back", pullback)):
        with sklearn.config_context(array_api_dispatch=True):
            fit = timed(lambda network=network: network.fit(X, y))
        yield f"{name}, uniform inputs: fit / H.T @ H", fit / product, "<= 3"
        print(network.layers_[-1])


def least_squares(m):
    """Yield times of least squares for a given H on the GPU, over the time of ``H.T @ H``."""
    torch.manual_seed(0)
    V = torch.linalg.qr(torch.randn(H, H, dtype=torch.float64, device="cuda")).Q
    B = torch.randn(m, Q, dtype=torch.float64, device="cuda")
    mixes = {
        f"condition 1e{c}": (V * torch.logspace(0, -c, H, dtype=V.dtype, device="cuda")) @ V.T
        for c in (1, 6, 10, 13)
    }
    mixes |= {f"rank {r} of {H}": V[:, :r] @ V[:r] for r in (50, 300, 700)}
    goals = {"condition 1e10": "<= 3.7"}
    for name, mix in mixes.items():
        rows = Rows(torch.randn(m, H, dtype=torch.float64, device="cuda") @ mix, B)
        product = _product(rows.X)

        def solved(rows=rows):
            return solve(rows.reduce, m, H, bias=True, sample=lambda step: rows.every(step).reduce)

        found = solved()
        label = f"least squares, {name} ({found.solver}, rank {found.rank})"
        yield f"{label}: / H.T @ H", timed(solved, 3) / product, goals.get(name)


def from_the_host(m, activation):
    """Yield the times of a fit to data in host memory, of the copy and of the fit on the GPU."""
    X, y = table(m)
    with sklearn.config_context(array_api_dispatch=True):
        compute = timed(lambda: net(activation).fit(X, y))
    host, labels = X.cpu().numpy(), y.cpu().numpy()
    copy = timed(lambda: torch.from_numpy(host).to("cuda"))
    there = net(activation, device="cuda")
    fit = timed(lambda: there.fit(host, labels))
    yield f"{activation}: copy from host memory", copy, None
    yield f"{activation}: fit from host memory", fit, None
    yield f"{activation}: fit / max(copy, fit on the card)", fit / max(copy, compute), "<= 1.5"


def stream(m, d, block_length=2**19):
    """Return blocks of m rows of d inputs in float32 from a generator."""

    def read():
        for start in range(0, m, block_length):
            rng = np.random.default_rng(start)
            n = min(block_length, m - start)
            X = rng.random((n, d), dtype=np.float32)
            y = (X[:, 0] * Q).astype(np.int8)
            X -= 0.5
            X *= 12**0.5
            yield X, y

    return Blocks(read)


def streamed(m, d, activation):
    """Yield rows per second and memory of a fit from a generator."""
    torch.cuda.reset_peak_memory_stats()
    start = time.perf_counter()
    fitted = net(activation, device="cuda").fit_blocks(stream(m, d))
    took = time.perf_counter() - start
    rows = sum(len(X) for X, *_ in stream(min(m, 2**22), d))
    start = time.perf_counter()
    rows = sum(len(X) for X, *_ in stream(min(m, 2**22), d))
    generate = (time.perf_counter() - start) * m / rows
    yield f"streamed {m:.0e} x {d}: seconds", took, None
    yield f"streamed {m:.0e} x {d}: rows per second", m / took, None
    yield f"streamed {m:.0e} x {d}: seconds to generate the rows once", generate, None
    yield f"streamed {m:.0e} x {d}: GB on the card", torch.cuda.max_memory_allocated() / 1e9, None
    print(fitted.layers_[-1])


def cv_estimator(m, d=20):
    """Yield times of the estimator that selects all hyper-parameters, with and without the GPU."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((m, d))
    signal = np.sin(2.0 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.3 * rng.standard_normal(m)
    y = np.digitize(signal, [-0.5, 0.5])
    KARClassifierCV(width=100, random_state=0, device="cuda").fit(X[:2000], y[:2000])
    took, decisions = {}, {}
    for device in ("cuda", None):
        start = time.perf_counter()
        fitted = KARClassifierCV(random_state=0, device=device).fit(X, y)
        took[device] = time.perf_counter() - start
        start = time.perf_counter()
        decisions[device] = fitted.decision_function(X)
        predict = time.perf_counter() - start
        name = device or f"NumPy, {os.cpu_count()} cores"
        yield f"cv {m:.0e} x {d}, {name}: fit", took[device], None
        yield f"cv {m:.0e} x {d}, {name}: decision function", predict, None
        yield f"cv {m:.0e} x {d}, {name}: accuracy of rows left out", fitted.best_score_, None
        print([(each.shape, each.alpha_) for each in fitted.estimators_])
    here, there = decisions[None], decisions["cuda"]
    same = np.mean(here.argmax(axis=1) == there.argmax(axis=1))
    yield f"cv {m:.0e} x {d}: fit, NumPy / cuda", took[None] / took["cuda"], None
    yield f"cv {m:.0e} x {d}: GB on the card", torch.cuda.max_memory_allocated() / 1e9, None
    yield "cv: relative difference", np.linalg.norm(here - there) / np.linalg.norm(here), None
    yield "cv: rows of the same class", same, None


def apart(d, m=2**16, h=1500):
    """Yield times of distances between rows of d columns, by torch.cdist and by columns."""
    X, Z = (torch.randn(n, d, dtype=torch.float64, device="cuda") for n in (m, h))
    for p in (1, 2):
        for name, few in (("torch.cdist", 0), ("by columns", d)):
            with patch.object(SETTINGS, "few_columns", few):
                took = timed(lambda p=p: distances(X, Z, p))
            yield f"distances {m} x {h}, {d} columns, p={p}: {name}", took, None


def log_odds(m):
    """Yield the time of the logit activation, and of a fit with it, as one kernel and as six."""
    X, y = table(m)
    H_in = X @ torch.randn(D, H, dtype=torch.float64, device="cuda")
    product = timed(lambda: H_in.T @ H_in)
    for name, kernel in (("one kernel", arrays.log_odds_kernel), ("six", lambda _: None)):
        with (
            patch.object(arrays, "log_odds_kernel", kernel),
            sklearn.config_context(array_api_dispatch=True),
        ):
            activation = timed(lambda: arrays.log_odds(H_in, 1e-300))
            fit = timed(lambda: net("logit").fit(X, y))
        yield f"logit, {name}: activation / H.T @ H", activation / product, None
        yield f"logit, {name}: fit / H.T @ H", fit / product, None


def main():
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="use a tenth of the rows")
    parser.add_argument("--csv", help="write the table to this file")
    parser.add_argument(
        "--only",
        nargs="*",
        default=["card", "ill-conditioned", "least-squares", "host", "stream"],
        help="card, ill-conditioned, least-squares, host, stream, cv or log-odds",
    )
    parser.add_argument("--stream-rows", type=float, default=1e8)
    arguments = parser.parse_args()
    m = 10**5 if arguments.quick else 10**6
    found = []
    parts = {
        "card": lambda: (r for f in ("logit", "tanh", "relu") for r in on_the_card(m, f)),
        "ill-conditioned": lambda: ill_conditioned_layers(m),
        "least-squares": lambda: least_squares(m),
        "host": lambda: (r for f in ("logit", "relu") for r in from_the_host(m, f)),
        "cv": lambda: (r for f in (cv_estimator(m), apart(20), apart(64), apart(256)) for r in f),
        "log-odds": lambda: log_odds(m),
        "stream": lambda: streamed(int(arguments.stream_rows), 50, "tanh"),
    }
    for name in arguments.only:
        for row in parts[name]():
            found.append(row)
            print("{:60} {:12.5g} {}".format(*(x or "" for x in row)), flush=True)
    print(
        torch.cuda.get_device_name(),
        "torch",
        torch.__version__,
        "karnet",
        karnet.__version__,
        "Python",
        platform.python_version(),
    )
    if arguments.csv:
        with open(arguments.csv, "w", newline="") as file:
            csv.writer(file).writerows([("what", "value", "goal"), *found])


if __name__ == "__main__":
    sys.exit(main())
