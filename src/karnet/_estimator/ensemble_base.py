"""The base of KARClassifierCV and KARRegressorCV: parameters, selection and prediction."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import is_classifier
from sklearn.model_selection import check_cv
from sklearn.utils.validation import check_is_fitted

from .._arrays.namespace import check_device
from .._arrays.threads import ONE_THREAD
from .._ensemble.average import Average, fit_average
from .._ensemble.member import Shape
from .._network.infinite_width import RidgeTargets, Splits
from .._network.layers import Network, weighted_scores
from .._network.local import LocalNetwork
from .._rows.memory import dense
from .._util.checks import check_positive, check_positive_integer, check_verbose
from .._util.messages import shown
from .._util.progress import Report, lines_of
from .._util.text_table import TextTable
from ..activations import Array
from . import parameters, validation
from .dask_methods import is_dask
from .notebook import KAREstimator, table_of_members

# Ridges to select from by default, relative to the mean eigenvalue of the kernel matrix.
RIDGES = np.logspace(-6, 2, 17)
# The same for tables that trees divide: targets without noise need small ridges.
LONG_RIDGES = np.logspace(-7, 1, 17)
# Largest input: differences of larger ones may overflow.
LARGEST_INPUT = 1e300
# Least positive input: slopes over differences of smaller ones may overflow.
LEAST_INPUT = 1e-290
# Least weight relative to the largest: smaller ones make no difference.
LEAST_RELATIVE_WEIGHT = 1e-12
# Largest weight below which all are rescaled: their squares may underflow.
LEAST_LARGEST_WEIGHT = 1e-100


class KARNetworkCV(KAREstimator):
    """The parameters of KARClassifierCV and KARRegressorCV, and the average that is fitted."""

    def __init__(
        self,
        *,
        n_estimators: int = 8,
        alphas: ArrayLike | None = None,
        width: int = 2000,
        cv: Any = None,
        time_budget: float | None = None,
        random_state: Any = None,
        device: str | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_estimators = n_estimators
        self.alphas = alphas
        self.width = width
        self.cv = cv
        self.time_budget = time_budget
        self.random_state = random_state
        self.device = device
        self.verbose = verbose

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _refuse_dask(self, *tables: Any) -> None:
        if is_dask(*tables):
            name = type(self).__name__
            raise ValueError(
                f"{name} needs rows in memory, but these are in a Dask collection: use "
                f"{name.removesuffix('CV')}, which is fitted to Dask collections block by block."
            )

    def _ridges(self, default: Array) -> Array:
        if self.alphas is None:
            return default
        ridges = validation.as_real_array("alphas", self.alphas).ravel()
        if not len(ridges) or not (np.isfinite(ridges) & (ridges > 0.0)).all():
            raise ValueError(f"alphas={shown(self.alphas)} must hold positive, finite numbers.")
        return np.sort(ridges)

    def _splits(
        self, X: Array, y: Any, kept: NDArray[np.intp], check: Callable[..., Any]
    ) -> Splits:
        """Return the rows that are left out together, as indices among the rows kept."""
        if self.cv is None:
            return None
        y = check(y, len(X))
        try:
            splitter = check_cv(self.cv, y, classifier=is_classifier(self))
            tests = [np.asarray(test) for _, test in splitter.split(X, y)]
        except (AttributeError, IndexError, TypeError, ValueError) as error:
            message = str(error).partition("\n")[0].rstrip(".")
            raise ValueError(f"cv={shown(self.cv)} cannot split the rows: {message}.") from error
        numbers = all(test.ndim == 1 and test.dtype.kind in "iu" for test in tests)
        if not tests or not numbers or any((test >= len(y)).any() for test in tests):
            raise ValueError(
                f"cv={shown(self.cv)} must give at least one split, with test rows as integer "
                f"indices below {len(y)}."
            )
        place = np.full(len(y), -1)
        place[kept] = np.arange(len(kept))
        places = [place[test] for test in tests]
        return [each[each >= 0] for each in places if (each >= 0).any()]

    @staticmethod
    def _clipped(weight: Array | None) -> Array | None:
        """Return positive weights that are neither negligible relative to the largest nor tiny."""
        if weight is None:
            return None
        largest = weight.max()
        weight = np.maximum(weight, LEAST_RELATIVE_WEIGHT * largest)
        return weight / largest if largest < LEAST_LARGEST_WEIGHT else weight

    def _fit_average(
        self,
        X: Array,
        Y: Array,
        weight: Array | None,
        kept: NDArray[np.intp],
        splits: Splits,
        strata: NDArray[np.intp],
        report: Report | None,
    ) -> tuple[Array, NDArray[np.bool_]]:
        """Select networks and fit them to the rows kept.

        Returns left-out predictions of all rows, and which of the rows kept have one that is not
        optimistic. Rows that were not kept are predicted.
        """
        if check_verbose(self.verbose) and report is None:
            report = lines_of(type(self).__name__)
        budget = self.time_budget
        limits: dict[str, Any] = {
            "seconds": np.inf if budget is None else check_positive("time_budget", budget),
            "n_members": check_positive_integer("n_estimators", self.n_estimators),
            "width": check_positive_integer("width", self.width),
            "report": report,
        }
        check_device(self.device)
        ridges = self._ridges(LONG_RIDGES if len(kept) > limits["width"] else RIDGES)
        if len(kept) < 2:
            raise ValueError(f"X must have at least two rows, but has {len(kept)} (n_samples=1).")
        rng = parameters.check_generator(self.random_state)
        weights, rows = np.ones(len(kept)) if weight is None else weight, X[kept]
        targets = RidgeTargets(Y, weights, ridges, splits)
        with ONE_THREAD():
            average = fit_average(rows, targets, strata, rng, **limits)
        # Only prediction intervals need the paths, which are large.
        needed = None if is_classifier(self) else targets
        self.estimators_ = [member.trimmed(needed) for member in average.members]
        self.weights_, self._offset = average.weights, average.offset
        self.cv_results_ = _results(average)
        self.feature_importances_ = average.importances(rows, weights)
        left_out = np.empty((len(X), Y.shape[1]))
        left_out[kept] = average.left_out
        if len(kept) < len(X):
            others = np.delete(np.arange(len(X)), kept)
            left_out[others] = self._predictions_for(X[others])
        return left_out, average.honest & ~np.isnan(average.left_out[:, 0])

    def _layer_table(self) -> TextTable | None:
        return table_of_members(self.estimators_) if hasattr(self, "estimators_") else None

    def _rows(self, X: Any, reset: bool) -> Array:
        """Return checked inputs, the largest clipped and the smallest set to zero."""
        X = dense(validation.check_inputs(self, X, reset=reset))
        sizes = np.abs(X)
        vanishing = (sizes < LEAST_INPUT) & (sizes > 0.0)
        if vanishing.any():
            X = np.where(vanishing, 0.0, X)
        return np.clip(X, -LARGEST_INPUT, LARGEST_INPUT) if (sizes > LARGEST_INPUT).any() else X

    def _mean_predictions(self, X: Any) -> Array:
        check_is_fitted(self)
        return self._predictions_for(self._rows(X, reset=False))

    def _predictions_for(self, X: Array) -> Array:
        with ONE_THREAD():
            device, networks = check_device(self.device), self._networks()
            return self._offset + weighted_scores(networks, self.weights_, X, device)

    def _networks(self) -> list[Network | LocalNetwork]:
        """Return the networks that are averaged."""
        return [member.network for member in self.estimators_]


def _without_scale(shape: Shape) -> Shape:
    """Return a shape whose scale, which may be selected again for more rows, does not count."""
    return replace(shape, scale=1.0)


def _results(average: Average) -> dict[str, NDArray[Any]]:
    """Return the networks that were tried, one column for each property."""
    chosen = {_without_scale(member.shape) for member in average.members}
    columns: dict[str, list[Any]] = {
        "view": [member.shape.view for member in average.tried],
        "kernel": [member.shape.kernel for member in average.tried],
        "activation": [member.activation for member in average.tried],
        "depth": [member.shape.depth for member in average.tried],
        "scale": [member.scale for member in average.tried],
        "metric_rounds": [member.shape.rounds for member in average.tried],
        "alpha": [member.alpha_ for member in average.tried],
        "squared_error": [member.error for member in average.tried],
        "averaged": [_without_scale(member.shape) in chosen for member in average.tried],
    }
    return {name: np.array(values) for name, values in columns.items()}
