"""The plane of one tab: each request is a fit, whose predictions on a grid are the picture."""

from __future__ import annotations

import warnings
from collections import Counter
from time import perf_counter
from typing import Any

import numpy as np

from .._arrays.threads import ONE_THREAD
from .._util.types import Array
from . import _layers
from ._models import fitted, inputs, python
from ._presets import preset
from ._request import HIGH, LOW, Request, whole

# Points on a curve for each grid point along an axis.
CURVE_POINTS = 4
# What a message gets back: values, and arrays by name.
Answer = tuple[dict[str, Any], dict[str, Array]]


class Plane:
    """Answers to the messages of one tab; the last fit is kept for points that are erased."""

    def __init__(self) -> None:
        self._request: Request | None = None
        self._net: Any = None
        self._alpha: float | None = None
        self._how, self._seconds = "", 0.0

    def answer(self, message: dict[str, Any]) -> Answer:
        """Return the answer to a message, or raise an error of one sentence."""
        # Matrices are small, and a second thread of BLAS takes longer to start than they need.
        with ONE_THREAD():
            return self._answer(message)

    def _answer(self, message: dict[str, Any]) -> Answer:
        match message.get("kind"):
            case "fit":
                return self.picture(Request.of(message))
            case "code":
                return self.code(Request.of(message)), {}
            case "preset":
                seed = whole("seed", message.get("seed", 0), 0, 9999)
                return preset(message.get("name"), seed), {}
        raise ValueError("a message must have the kind fit, code or preset.")

    def code(self, request: Request) -> dict[str, Any]:
        """Return the lines of Python that make the model of a request."""
        self._fit(request)
        return {"code": python(request, self._alpha)}

    def picture(self, request: Request) -> Answer:
        """Fit the model of a request, and return its figures and its predictions on a grid."""
        start = perf_counter()
        self._fit(request)
        net, X, y = self._net, inputs(request.settings, request.X), request.y
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            figures = {
                "n": len(X),
                "how": self._how,
                "ridge": self._alpha,
                "score": float(net.score(X, y)),
                "score_name": "accuracy" if request.task == "classes" else "R²",
                "left_out": self._left_out(X, y),
                "layers": _layers.reports(net),
                "spectra": _layers.singular_values(net, X),
                "targets": self._targets(request, X, y),
                "classes": getattr(net, "classes_", np.arange(0)).tolist(),
            }
            arrays = _pictures(net, request)
        return figures | {
            "fit_ms": 1e3 * self._seconds,
            "ms": 1e3 * (perf_counter() - start),
        }, arrays

    def _fit(self, request: Request) -> None:
        """Fit the model of a request; the fit of the same points and settings is kept."""
        request.check_points()
        if self._is_fitted_to(request):  # only the picture is finer, or shows more
            return
        start = perf_counter()
        erased = self._erased(request)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            how = "" if erased is None else self._forget(request, erased)
            if not how:
                self._request = None
                self._net, self._alpha = fitted(request)
        self._request, self._how = request, how or "full fit"
        self._seconds = perf_counter() - start

    def _is_fitted_to(self, request: Request) -> bool:
        last = self._request
        if last is None or (last.task, last.settings) != (request.task, request.settings):
            return False
        return np.array_equal(last.points, request.points)

    def _erased(self, request: Request) -> Array | None:
        """Return the points that were erased since the last fit, if nothing else has changed.

        The result is None if the model cannot forget points: hidden layers that are fitted would
        change, infinitely wide layers keep all points, and so does an average.
        """
        last = self._request
        fixed = request.settings.model == "random" and request.settings.ridge is not None
        if last is None or not fixed or last.settings != request.settings:
            return None
        if last.task != request.task or len(request.points) >= len(last.points):
            return None
        before, now = (Counter(map(tuple, each.points.tolist())) for each in (last, request))
        if now - before or len(np.unique(last.y)) != len(np.unique(request.y)):
            return None
        return np.array(list((before - now).elements())).reshape(-1, 3)

    def _forget(self, request: Request, erased: Array) -> str:
        """Remove points from the last fit; return how, or "" if they cannot be removed exactly."""
        gone = Request(request.task, erased, request.settings)
        try:
            self._net.forget(inputs(gone.settings, gone.X), gone.y)
        except ValueError:  # the remaining points do not determine the weights
            return ""
        n = len(erased)
        return f"exact removal of {n} {'point' if n == 1 else 'points'}, without a new fit"

    def _left_out(self, X: Array, y: Any) -> float | None:
        """Return the score of leave-one-out predictions, if it is defined."""
        score = getattr(self._net, "best_score_", None)
        if score is None:
            try:
                score = _layers.left_out_score(self._net, X, y)
            except ValueError:
                return None
        return None if score is None or not np.isfinite(score) else float(score)

    def _targets(self, request: Request, X: Array, y: Any) -> list[dict[str, Any]]:
        wanted = request.layers and request.settings.model == "paper"
        return _layers.pulled_back(self._net, X, y) if wanted else []


def _pictures(net: Any, request: Request) -> dict[str, Array]:
    """Return predictions on a grid: probabilities of the classes, or the curve."""
    settings = request.settings
    if request.task == "curve":
        x = np.linspace(LOW, HIGH, CURVE_POINTS * request.grid)
        return {"curve": np.column_stack([x, net.predict(inputs(settings, x[:, None]))])}
    step = (HIGH - LOW) / request.grid
    middle = LOW + step * (np.arange(request.grid) + 0.5)
    places = np.stack(np.meshgrid(middle, middle), axis=-1).reshape(-1, 2)
    surface = net.predict_proba(inputs(settings, places))
    surface = surface.T.reshape(-1, request.grid, request.grid)
    lines = _layers.unit_lines(net)
    if settings.model not in ("paper", "cv") and len(lines):
        # From a'(s (2 x - 1)) + b to the coordinates of the plane.
        a, b = 2.0 * settings.scale * lines[:, :2], lines[:, 2:]
        lines = np.hstack([a, b - 0.5 * a.sum(axis=1, keepdims=True)])
    return {"surface": surface, "lines": lines}
