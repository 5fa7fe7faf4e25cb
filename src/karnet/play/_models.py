"""The estimators of the menu, and the lines of Python that make them."""

from __future__ import annotations

from math import inf
from typing import Any

from .._util.types import Array
from ..estimators import KARClassifier, KARRegressor
from ..loo import choose_alpha
from ..selection import KARClassifierCV, KARRegressorCV
from ._layers import ridge_path
from ._request import Choice, Request

# Seconds that the estimator that selects everything may take for one picture.
BUDGET = 2.0


def inputs(settings: Choice, X: Array) -> Array:
    """Return places as the inputs of a model.

    The paper scales inputs to [0, 1], where points lie. Random layers see them around zero.
    """
    if settings.model in ("paper", "cv"):
        return X
    return settings.scale * (2.0 * X - 1.0)


def estimator(request: Request, alpha: float = 0.0) -> Any:
    """Return the estimator of a request, with a ridge; it is not fitted."""
    return _kind(request)(**parameters(request.settings, alpha))


def _kind(request: Request) -> Any:
    cv = request.settings.model == "cv"
    if request.task == "classes":
        return KARClassifierCV if cv else KARClassifier
    return KARRegressorCV if cv else KARRegressor


def parameters(settings: Choice, alpha: float) -> dict[str, Any]:
    """Return the parameters of an estimator that differ from their defaults."""
    if settings.model == "cv":
        return {"time_budget": BUDGET, "random_state": settings.seed}
    infinite = settings.model == "infinite"
    sizes = (inf,) * max(len(settings.sizes), 1) if infinite else settings.sizes
    hidden = {"paper": "pullback", "infinite": "random"}.get(settings.model, settings.model)
    wanted = {
        "hidden_layer_sizes": sizes,
        "activation": settings.activation,
        "hidden": hidden,
        "alpha": alpha,
        "fit_intercept": settings.bias,
        "direct_links": settings.direct_links,
        "init": settings.init,
        "random_state": settings.seed,
    }
    defaults = KARRegressor().get_params(deep=False)
    return {name: value for name, value in wanted.items() if value != defaults[name]}


def fitted(request: Request) -> tuple[Any, float | None]:
    """Return the fitted estimator of a request, and its ridge.

    By leave-one-out, the ridge is the one of least squared error of the output layer above the
    hidden layers of a fit without a ridge; the network is then fitted with it.
    """
    settings = request.settings
    X = inputs(settings, request.X)
    if settings.model == "cv":
        return estimator(request).fit(X, request.y), None
    net = estimator(request, settings.ridge or 0.0).fit(X, request.y)
    if settings.ridge is not None:
        return net, settings.ridge
    alpha = choose_alpha(ridge_path(net, X, request.y)[0])
    return net.set_params(alpha=alpha).fit(X, request.y), alpha


def python(request: Request, alpha: float | None) -> str:
    """Return lines of Python that fit the model of a request."""
    settings, kind = request.settings, _kind(request).__name__
    given = parameters(settings, alpha or 0.0)
    sizes = given.pop("hidden_layer_sizes", None)
    arguments = [f"{name}={value!r}" for name, value in given.items()]
    if sizes is not None:
        widths = ", ".join("np.inf" if size == inf else str(size) for size in sizes)
        arguments.insert(0, f"({widths},)" if sizes else "()")
    places = "inputs" if request.task == "curve" else "points"
    scaled = f"{settings.scale:g} * (2 * {places} - 1)"
    plain = settings.model in ("paper", "cv")
    lines = [
        "import numpy as np",
        f"from karnet import {kind}",
        "",
        f"{places} = np.array({request.X.tolist()})",
        f"y = np.array({request.y.tolist()})",
        f"X = {places if plain else scaled}",
        f"net = {kind}({', '.join(arguments)})",
        "net.fit(X, y)",
        "print(net.score(X, y))",
    ]
    if settings.ridge is None and settings.model != "cv":
        lines[6] += "  # the ridge of least leave-one-out error"
    return "\n".join(lines) + "\n"
