"""Classifiers without a goal, trained and tested on the same table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Self

import data
import numpy as np
from numpy.typing import NDArray
from sklearn.kernel_approximation import Nystroem, RBFSampler
from sklearn.linear_model import RidgeClassifier, RidgeClassifierCV
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from timing import Contestant, Timing, race, threads

from karnet import KARClassifier

SIZES = {"full": (20_000, 20, 500), "quick": (2_000, 20, 100), "tiny": (300, 20, 20)}


@dataclass(frozen=True)
class Peer:
    """A classifier, and whether it is so slow that it is fitted only once."""

    name: str
    make: Callable[[], Any]
    slow: bool = False


@dataclass(frozen=True)
class Row:
    """The result of a classifier, or the reason why it could not run."""

    name: str
    fit: Timing | None = None
    predict: Timing | None = None
    accuracy: float | None = None
    reason: str = ""


def peers(d: int, h: int) -> list[Peer]:
    """Return the classifiers; h is the number of random or sampled features."""
    return [
        Peer("karnet pullback", partial(KARClassifier, (h,), random_state=0)),
        Peer("karnet random", partial(KARClassifier, (h,), hidden="random", random_state=0)),
        Peer("RidgeClassifier cholesky", partial(RidgeClassifier, solver="cholesky")),
        Peer("RidgeClassifier svd", partial(RidgeClassifier, solver="svd")),
        Peer("RidgeClassifierCV", RidgeClassifierCV),
        Peer("RBFSampler + Ridge", partial(_on_features, RBFSampler, d, h)),
        Peer("Nystroem + Ridge", partial(_on_features, Nystroem, d, h)),
        Peer("MLPClassifier adam", partial(MLPClassifier, random_state=0), slow=True),
        Peer(
            "MLPClassifier lbfgs",
            partial(MLPClassifier, solver="lbfgs", random_state=0),
            slow=True,
        ),
        Peer("LightGBM", _lightgbm, slow=True),
        Peer("swimnetworks", partial(SampledNetwork, h)),
        Peer("hpelm", partial(ExtremeLearningMachine, d, h)),
    ]


def side_by_side(scale: str, repeats: int = 3) -> list[Row]:
    """Fit all classifiers in turn, then predict with all in turn."""
    m, d, h = SIZES[scale]
    X, y = data.classes(m, d)
    X, X_test, y, y_test = train_test_split(X, y, random_state=0)
    able, rows = [], []
    for peer in peers(d, h):
        try:
            peer.make().fit(X[:200], y[:200])
            able.append(peer)
        except Exception as error:  # every reason is shown in the table
            rows.append(Row(peer.name, reason=_reason(error)))
    fits, fitted = race([Contestant(p.name, _fit(p, X, y), p.slow) for p in able], repeats)
    predict_times, predictions = race(
        [Contestant(name, partial(each.predict, X_test)) for name, each in fitted.items()], repeats
    )
    done = [
        Row(name, fits[name], predict_times[name], float(np.mean(predictions[name] == y_test)))
        for name in fitted
    ]
    return done + rows


def _fit(peer: Peer, X: NDArray[Any], y: NDArray[Any]) -> Callable[[], Any]:
    return lambda: peer.make().fit(X, y)


def _reason(error: Exception) -> str:
    if isinstance(error, ImportError):
        return f"not installed: {error}"
    return f"failed: {type(error).__name__}: {error}"[:80]


def _on_features(features: Any, d: int, h: int) -> Any:
    # A width at which kernel values of inputs in [0, 1] are neither all near 1 nor all near 0.
    sampled = features(gamma=6.0 / d, n_components=h, random_state=0)
    return make_pipeline(sampled, RidgeClassifier(alpha=1e-3))


def _lightgbm() -> Any:
    from lightgbm import LGBMClassifier

    return LGBMClassifier(n_jobs=threads(), random_state=0, verbosity=-1)


class SampledNetwork:
    """The network of swimnetworks: weights from pairs of rows, and a linear output layer."""

    def __init__(self, h: int) -> None:
        from swimnetworks import Dense, Linear

        dense = Dense(
            is_classifier=True,
            layer_width=h,
            activation="tanh",
            parameter_sampler="tanh",
            random_seed=0,
        )
        self.network = make_pipeline(dense, Linear(is_classifier=True))

    def fit(self, X: NDArray[Any], y: NDArray[Any]) -> Self:
        """Fit the network."""
        self.network.fit(X, y)
        return self

    def predict(self, X: NDArray[Any]) -> NDArray[Any]:
        """Return the class of each row."""
        return np.asarray(self.network.predict(X)).ravel()


class ExtremeLearningMachine:
    """The network of hpelm, whose targets are class indicators."""

    def __init__(self, d: int, h: int) -> None:
        from hpelm import ELM

        np.random.seed(0)  # noqa: NPY002 - hpelm draws from NumPy's global generator
        self.network = ELM(d, data.N_CLASSES, classification="c")
        self.network.add_neurons(h, "sigm")

    def fit(self, X: NDArray[Any], y: NDArray[Any]) -> Self:
        """Fit the network."""
        self.network.train(X, np.eye(data.N_CLASSES)[y], "c")
        return self

    def predict(self, X: NDArray[Any]) -> NDArray[Any]:
        """Return the class of each row."""
        return np.asarray(self.network.predict(X).argmax(axis=1))
