"""Comparisons with other libraries: one function for each kind."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import data
import numpy as np
import scipy.linalg
from numpy.typing import NDArray
from sklearn.datasets import load_iris
from sklearn.linear_model import RidgeClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.preprocessing import minmax_scale
from threadpoolctl import threadpool_limits
from timing import Contestant, Outcome, Timing, race, threads

import karnet
from karnet import KARClassifier
from karnet.paper.baseline import LevenbergMarquardtClassifier

Array = NDArray[np.float64]
N_RIGHT_HAND_SIDES = 26
# The largest relative difference of two solutions of a well-conditioned problem.
SAME = 1e-10
# Bytes that a fit may need in addition to its input and to some 8-byte matrices of h x h.
ALLOWANCE, N_SQUARES = 256e6, 3
# Numbers in a block that stays in a core's own cache.
READY = 2**16


def _outcome(
    timings: dict[str, Timing], ours: str, peers: tuple[str, ...], faster: bool, **more: Any
) -> Outcome:
    """Return the ratio of the best peer's time to ours or, if not `faster`, its inverse."""
    ratio = timings[ours].median / min(timings[peer].median for peer in peers)
    return Outcome(1.0 / ratio if faster else ratio, tuple(timings.values()), **more)


def lstsq_full_rank(m: int, n: int, *, repeats: int) -> Outcome:
    """Time `lstsq`, LAPACK's drivers, and the pseudoinverse, which does not count for the goal."""
    A = np.random.default_rng(0).standard_normal((m, n))
    B = data.right_hand_sides(A, N_RIGHT_HAND_SIDES)
    timings, results = race(
        [
            Contestant("karnet", lambda: karnet.lstsq(A, B)),
            *(Contestant(name, _lapack(A, B, name)) for name in ("gelsd", "gelsy")),
            Contestant("pinv", lambda: np.linalg.pinv(A) @ B, slow=True),
        ],
        repeats,
    )
    ours, theirs = results["karnet"], results["gelsd"][0]
    apart = float(np.linalg.norm(ours.coef - theirs) / np.linalg.norm(theirs))
    note = f"{ours.solver}; apart {apart:.0e}"
    return _outcome(
        timings, "karnet", ("gelsd", "gelsy"), faster=True, note=note, holds=apart <= SAME
    )


def lstsq_low_rank(m: int, n: int, *, repeats: int) -> Outcome:
    """Time `lstsq` and LAPACK's drivers on a matrix of 3/5 of the full rank."""
    A = data.low_rank(m, n, 3 * n // 5)
    B = data.right_hand_sides(A, N_RIGHT_HAND_SIDES)
    # NumPy's cut-off: SciPy's smaller one counts rounding errors as rank.
    cut_off = float(np.finfo(np.float64).eps) * max(m, n)
    timings, results = race(
        [
            Contestant("karnet", lambda: karnet.lstsq(A, B)),
            *(Contestant(name, _lapack(A, B, name, cut_off)) for name in ("gelsd", "gelsy")),
        ],
        repeats,
    )
    ranks = [results["karnet"].rank, int(results["gelsd"][2]), int(results["gelsy"][2])]
    note = f"{results['karnet'].solver}; ranks {', '.join(map(str, ranks))}"
    return _outcome(
        timings, "karnet", ("gelsd", "gelsy"), faster=True, note=note, holds=len(set(ranks)) == 1
    )


def _lapack(A: Array, B: Array, driver: str, cut_off: float | None = None) -> Callable[[], Any]:
    return lambda: scipy.linalg.lstsq(A, B, cond=cut_off, lapack_driver=driver)


def lstsq_small(m: int, n: int, *, repeats: int) -> Outcome:
    """Time `lstsq` and NumPy's function with one right-hand side, where overhead dominates."""
    A = np.random.default_rng(0).standard_normal((m, n))
    b = data.right_hand_sides(A, 1)[:, 0]
    timings, results = race(
        [
            Contestant("karnet", lambda: karnet.lstsq(A, b)),
            Contestant("numpy", lambda: np.linalg.lstsq(A, b, rcond=None)),
        ],
        repeats,
    )
    return _outcome(timings, "karnet", ("numpy",), faster=False, note=results["karnet"].solver)


def lstsq_beside_gram(
    m: int, n: int, *, repeats: int, draw: Callable[[int, int], Array]
) -> Outcome:
    """Time `lstsq` with a bias for a given matrix H, and the product ``H.T @ H``."""
    H = draw(m, n)
    B = np.random.default_rng(1).standard_normal((m, 10))
    timings, results = race(
        [
            Contestant("karnet", lambda: karnet.lstsq(H, B, bias=True)),
            Contestant("H.T @ H", lambda: H.T @ H),
        ],
        repeats,
    )
    note = f"{results['karnet'].solver} rank {results['karnet'].rank}"
    return _outcome(timings, "karnet", ("H.T @ H",), faster=False, note=note)


def share_of_rank(m: int, n: int, tenths: int) -> Array:
    """Return a matrix whose rank is a number of tenths of its columns."""
    return data.low_rank(m, n, tenths * n // 10)


def fit_beside_gram(
    m: int, d: int, h: int, *, repeats: int, shrink: float = 1.0, **parameters: Any
) -> Outcome:
    """Time a fit, and the product ``H.T @ H`` alone for a given H."""
    X, y = data.table(m, d)
    X *= shrink
    H = np.random.default_rng(1).standard_normal((m, h))
    net = KARClassifier((h,), random_state=0, **parameters)
    timings, _ = race(
        [
            Contestant("karnet", lambda: net.fit(X, y)),
            Contestant("H.T @ H", lambda: H.T @ H),
        ],
        repeats,
    )
    return _outcome(timings, "karnet", ("H.T @ H",), faster=False, note=_layers(net))


def _layers(net: KARClassifier) -> str:
    return ", ".join(f"{each.solver} rank {each.rank}" for each in net.layers_ if each.rank)


def fit_beside_gfdl(m: int, d: int, h: int, *, repeats: int) -> Outcome:
    """Time networks with the same hidden layer in karnet and in gfdl, which has no output bias."""
    from gfdl.model import GFDLClassifier

    X, y = data.classes(m, d)
    peer = GFDLClassifier((h,), "tanh", "normal", direct_links=False, seed=0).fit(X, y)
    net = KARClassifier(
        (h,),
        activation="tanh",
        output_activation="identity",
        hidden="random",
        init=[np.vstack([peer.b_[0], peer.W_[0].T])],
    )
    timings, _ = race(
        [
            Contestant("karnet", lambda: net.fit(X, y)),
            Contestant("gfdl", lambda: peer.fit(X, y)),
        ],
        repeats,
    )
    ours, theirs = net.score(X, y), peer.score(X, y)
    note = f"training accuracy {ours:.4f} and {theirs:.4f}"
    return _outcome(timings, "karnet", ("gfdl",), faster=True, note=note, holds=ours >= theirs)


def fit_beside_perceptron(m: int, d: int, *, repeats: int) -> Outcome:
    """Time the defaults of both classifiers: a hundred hidden units."""
    X, y = data.classes(m, d)
    net, peer = KARClassifier(random_state=0), MLPClassifier(random_state=0)
    timings, _ = race(
        [
            Contestant("karnet", lambda: net.fit(X, y)),
            Contestant("MLPClassifier", lambda: peer.fit(X, y), slow=True),
        ],
        repeats,
    )
    note = f"{peer.n_iter_} epochs; training accuracy {net.score(X, y):.3f}, {peer.score(X, y):.3f}"
    return _outcome(timings, "karnet", ("MLPClassifier",), faster=True, note=note)


def fit_beside_levenberg_marquardt(m: int, d: int, h: int, *, repeats: int) -> Outcome:
    """Time networks of equal width on three classes."""
    X, y = data.classes(m, d, n_classes=3)
    net = KARClassifier((h,), random_state=0)
    peer = LevenbergMarquardtClassifier((h,), random_state=0)
    timings, _ = race(
        [
            Contestant("karnet", lambda: net.fit(X, y)),
            Contestant("Levenberg-Marquardt", lambda: peer.fit(X, y), slow=True),
        ],
        repeats,
    )
    note = f"{peer.n_iter_} epochs; training accuracy {net.score(X, y):.3f}, {peer.score(X, y):.3f}"
    return _outcome(timings, "karnet", ("Levenberg-Marquardt",), faster=True, note=note)


def fit_iris(h: int, *, repeats: int) -> Outcome:
    """Time a fit so small that overhead dominates."""
    X, y = load_iris(return_X_y=True)
    X = minmax_scale(X)
    timings, _ = race(
        [
            Contestant("karnet", lambda: KARClassifier((h,), random_state=0).fit(X, y)),
            Contestant("RidgeClassifier", lambda: RidgeClassifier().fit(X, y)),
        ],
        repeats,
    )
    return _outcome(timings, "karnet", ("RidgeClassifier",), faster=False)


def predict_beside_products(
    m: int, d: int, h: int, *, repeats: int, activation: str, bare: Callable[[Array, Array], Any]
) -> Outcome:
    """Time `predict`, and its products and activation alone, with the same number of threads."""
    X, y = data.table(m, d)
    net = KARClassifier((h,), hidden="random", activation=activation, random_state=0)
    net.fit(X[: 4 * h], y[: 4 * h])
    V, W = net.coefs_
    rows = max(READY // h, 32)
    ready = np.random.default_rng(0).random((rows, h))

    def products() -> Callable[[int], None]:
        H, G = np.empty((rows, h)), np.empty((rows, W.shape[1]))

        def of_block(start: int) -> None:
            k = min(rows, m - start)
            np.matmul(X[start : start + k], V, out=H[:k])
            np.matmul(H[:k], W, out=G[:k])

        return of_block

    def activated() -> Callable[[int], None]:
        out = np.empty((rows, h))
        return lambda start: bare(ready[: m - start], out[: m - start])

    timings, _ = race(
        [
            Contestant("karnet", lambda: net.predict(X)),
            Contestant("products", lambda: _side_by_side(products, m, rows)),
            Contestant("activation", lambda: _side_by_side(activated, m, rows)),
        ],
        repeats,
    )
    together = timings["products"].median + timings["activation"].median
    return Outcome(timings["karnet"].median / together, tuple(timings.values()))


def _side_by_side(worker: Callable[[], Callable[[int], None]], m: int, rows: int) -> None:
    """Process m rows; each of n threads has its own worker and takes every n-th block."""
    n = threads()

    def go(first: int) -> None:
        work = worker()
        for start in range(first * rows, m, n * rows):
            work(start)

    with threadpool_limits(1), ThreadPoolExecutor(n) as pool:
        list(pool.map(go, range(n)))


def bare_logit(x: Array, out: Array) -> None:
    """Write ``log|x / (1 - x)|`` to `out`."""
    np.subtract(1.0, x, out=out)
    np.divide(x, out, out=out)
    np.abs(out, out=out)
    np.log(out, out=out)


def peak_memory(m: int, d: int, h: int, *, repeats: int, hidden: str) -> Outcome:
    """Return the peak memory of a fit without its input, relative to the allowed memory."""
    script = Path(__file__).with_name("peak.py")
    command = [sys.executable, str(script), hidden, *map(str, (m, d, h))]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    found = json.loads(printed)
    allowed = ALLOWANCE + N_SQUARES * 8 * h * h
    note = f"{found['bytes'] / 1e6:.0f} of {allowed / 1e6:.0f} MB"
    return Outcome(found["bytes"] / allowed, (Timing("karnet", (found["seconds"],)),), note)


def growth(low: int, high: int, d: int, h: int, *, repeats: int, hidden: str) -> Outcome:
    """Return the log-log slope of the time of a fit over the number of rows."""
    X, y = data.table(high, d)
    net = KARClassifier((h,), hidden=hidden, random_state=0)
    numbers = np.geomspace(low, high, 5).astype(int).tolist()

    def fit(m: int) -> None:
        net.fit(X[:m], y[:m])

    timings, _ = race([Contestant(f"m = {m}", partial(fit, m)) for m in numbers], repeats)
    seconds = [timing.median for timing in timings.values()]
    slope = np.polyfit(np.log(numbers), np.log(seconds), 1)[0]
    return Outcome(float(slope), tuple(timings.values()))
