"""What the classifier and the regressor that settle everything themselves share."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, is_classifier
from sklearn.model_selection import check_cv
from sklearn.utils.validation import check_is_fitted

from .._arrays.namespace import check_device
from .._arrays.threads import ONE_THREAD
from .._ensemble.average import Average, fit_average
from .._network.infinite_width import RidgeTargets, Splits
from .._network.layers import Network, mean_scores
from .._rows.memory import dense
from .._util.messages import shown
from ..activations import Array
from . import parameters, validation
from .notebook import ShowsLayers

__all__ = ["KARNetworkCV"]

# Ridges as shares of the mean eigenvalue of the hidden layer's products.
RIDGES = np.logspace(-6, 2, 17)
# Differences of larger inputs may overflow, and slopes over those of smaller ones.
LARGEST, LEAST = 1e300, 1e-290
# The least weight beside the largest, below which it would make no difference; and weights whose
# squares may underflow.
LEAST_WEIGHT, LIGHT = 1e-12, 1e-100


class KARNetworkCV(ShowsLayers, BaseEstimator):
    """What the classifier and the regressor share: the parameters, and how members are learned."""

    def __init__(
        self,
        *,
        n_estimators: int = 8,
        alphas: ArrayLike | None = None,
        width: int = 1500,
        cv: Any = None,
        time_budget: float | None = None,
        random_state: Any = None,
        device: str | None = None,
    ) -> None:
        self.n_estimators = n_estimators
        self.alphas = alphas
        self.width = width
        self.cv = cv
        self.time_budget = time_budget
        self.random_state = random_state
        self.device = device

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _refuse_dask(self, *tables: Any) -> None:
        if validation.is_dask(*tables):
            name = type(self).__name__
            raise ValueError(
                f"{name} learns from rows in memory only, and these are in a Dask collection: use "
                f"{name.removesuffix('CV')}, which learns from one block by block."
            )

    def __setstate__(self, state: dict[str, Any]) -> None:
        # What was kept before a parameter came has its default.
        defaults = type(self)().get_params(deep=False)
        super().__setstate__(state | {name: defaults[name] for name in defaults.keys() - state})

    def _limits(self) -> dict[str, Any]:
        seconds = np.inf
        if self.time_budget is not None:
            seconds = parameters.check_positive("time_budget", self.time_budget)
        return {
            "n_members": parameters.check_positive_integer("n_estimators", self.n_estimators),
            "width": parameters.check_positive_integer("width", self.width),
            "seconds": seconds,
        }

    def _ridges(self) -> Array:
        if self.alphas is None:
            return RIDGES
        ridges = validation.as_real_array("alphas", self.alphas).ravel()
        if not len(ridges) or not (np.isfinite(ridges) & (ridges > 0.0)).all():
            raise ValueError(f"alphas={shown(self.alphas)} must hold positive, finite numbers.")
        return np.sort(ridges)

    def _splits(self, X: Array, y: NDArray[Any], kept: NDArray[np.bool_]) -> Splits:
        """Return the rows that are left out together, counted among those kept."""
        if self.cv is None:
            return None
        try:
            splitter = check_cv(self.cv, y, classifier=is_classifier(self))
            tests = [np.asarray(test) for _, test in splitter.split(X, y)]
        except (AttributeError, IndexError, TypeError, ValueError) as error:
            said = str(error).partition("\n")[0].rstrip(".")
            raise ValueError(f"cv={shown(self.cv)} cannot split the rows: {said}.") from error
        numbers = all(test.ndim == 1 and test.dtype.kind in "iu" for test in tests)
        if not tests or not numbers or any((test >= len(y)).any() for test in tests):
            raise ValueError(f"cv={shown(self.cv)} must leave out rows, named by their numbers.")
        place = np.cumsum(kept) - 1
        return [place[test[kept[test]]] for test in tests if kept[test].any()]

    @staticmethod
    def _felt(weight: Array | None) -> Array | None:
        """Return positive weights none of which is too small beside the others, or at all."""
        if weight is None:
            return None
        most = weight.max()
        weight = np.maximum(weight, LEAST_WEIGHT * most)
        return weight / most if most < LIGHT else weight

    def _learn(
        self,
        X: Array,
        Y: Array,
        weight: Array | None,
        splits: Splits,
        strata: NDArray[np.intp],
    ) -> Average:
        """Learn from rows of positive weight."""
        limits, ridges, device = self._limits(), self._ridges(), check_device(self.device)
        if len(X) < 2:
            raise ValueError(f"X must have at least two rows, but has {len(X)} (n_samples=1).")
        rng = parameters.check_generator(self.random_state)
        weights = np.ones(len(X)) if weight is None else weight
        targets = RidgeTargets(Y, weights, ridges, splits)
        with ONE_THREAD():
            average = fit_average(X, targets, strata, rng, device=device, **limits)
        # Paths are large, and needed for intervals alone.
        kept = [member.trimmed(path=not is_classifier(self)) for member in average.members]
        self.estimators_ = kept
        self.cv_results_ = _results(average)
        self.feature_importances_ = average.importances(X, weights)
        return average

    def _rows(self, X: Any, reset: bool) -> Array:
        """Return checked inputs, the largest moved in and the least moved to zero."""
        X = dense(validation.check_inputs(self, X, reset=reset))
        sizes = np.abs(X)
        vanishing = (sizes < LEAST) & (sizes > 0.0)
        if vanishing.any():
            X = np.where(vanishing, 0.0, X)
        return np.clip(X, -LARGEST, LARGEST) if (sizes > LARGEST).any() else X

    def _answers(self, X: Any) -> Array:
        check_is_fitted(self)
        return self._answers_to(self._rows(X, reset=False))

    def _answers_to(self, X: Array) -> Array:
        with ONE_THREAD():
            return mean_scores(self._networks(), X, check_device(self.device))

    def _networks(self) -> list[Network]:
        """Return the networks that are averaged."""
        return [member.network for member in self.estimators_]


def _results(average: Average) -> dict[str, NDArray[Any]]:
    """Return what was tried, one column for each property; pandas reads it."""
    chosen = {member.shape for member in average.members}
    columns: dict[str, list[Any]] = {
        "view": [member.shape.view for member in average.tried],
        "kernel": [member.shape.kernel for member in average.tried],
        "activation": [member.activation for member in average.tried],
        "depth": [member.shape.depth for member in average.tried],
        "scale": [member.scale for member in average.tried],
        "metric_rounds": [member.shape.rounds for member in average.tried],
        "alpha": [member.alpha_ for member in average.tried],
        "squared_error": [member.error for member in average.tried],
        "averaged": [member.shape in chosen for member in average.tried],
    }
    return {name: np.array(values) for name, values in columns.items()}
