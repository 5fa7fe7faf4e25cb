"""The base of KARClassifierCV and KARRegressorCV: parameters, selection and prediction."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from copy import copy
from dataclasses import replace
from operator import attrgetter
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, TransformerMixin, is_classifier
from sklearn.model_selection import check_cv
from sklearn.utils.validation import check_is_fitted

from .._arrays.namespace import check_device
from .._arrays.threads import ONE_THREAD
from .._columns.encoder import TableEncoder
from .._columns.frames import holds_numbers_only, is_frame
from .._model.evidence import FitRows
from .._model.fitted import FittedModel
from .._network.infinite_width import RidgeTargets, Splits
from .._network.local import LocalNetwork
from .._rows.inputs import Inputs
from .._rows.memory import dense
from .._rows.streamed import LocalPasses, Passes, Raw
from .._search.average import Average, fit_average
from .._search.member import Member
from .._search.settings import settings_for
from .._util.checks import all_finite, check_positive, check_positive_integer, check_verbose
from .._util.messages import shown
from .._util.progress import Report, lines_of
from .._util.text_table import TextTable
from .._util.types import Array, Indices
from ..blocks import Blocks
from . import parameters, validation
from .dask_methods import lazy_for_dask
from .notebook import KAREstimator, table_of_members
from .targets import Check, gathered

# Squared error of indicators of classes that need not be smaller: almost all classes are right.
ENOUGH = 5e-3
# The same of numbers of variance 1: rows are seen in single precision, and the rest is rounding.
ENOUGH_OF_NUMBERS = 1e-12
# Ridges to select from by default, relative to the diagonal of the kernel matrix.
RIDGES = np.logspace(-7, 2, 19)
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

    model_: FittedModel[Any]
    _importances: Array | None = None

    def __init__(
        self,
        *,
        n_estimators: int = 20,
        alphas: ArrayLike | None = None,
        width: int | None = None,
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
        tags.input_tags.allow_nan = True
        return tags

    def fit_blocks(self, blocks: Any) -> Self:
        """Select networks and fit them to blocks of rows, as `fit` does to all rows at once.

        The blocks are read once to check them and to collect the targets, once for the sample of
        rows that the search uses, and once for each network. A network keeps all rows in single
        precision, which must fit in memory. Apart from that, memory holds the sample and a few
        blocks at a time.

        Parameters
        ----------
        blocks : karnet.blocks.Blocks, list or callable
            The blocks, tuples ``(X, y)`` or ``(X, y, sample_weight)``, or a function that returns
            an iterator over them each time it is called.

        Returns
        -------
        self
        """
        source = Blocks.of(blocks)
        return self._fit(LocalPasses(source, source.names))

    @abstractmethod
    def _fit(self, source: Passes | Raw, report: Report | None = None) -> Self:
        """Fit the networks to rows in memory, or to blocks that are read in passes.

        `report` is called after each step, whatever `verbose` is.
        """

    def _read(
        self, source: Passes | Raw, check: Check
    ) -> tuple[TableEncoder | None, Inputs, Any, Any]:
        """Return the encoder, and the inputs, the targets and the weights of all rows."""
        if isinstance(source, tuple):
            X, y, sample_weight = source
            encoder, X = self._encoded(X, sample_weight)
            return encoder, Inputs.in_memory(X, _bounded), y, sample_weight
        shape, y, weight = gathered(source, check)
        validation.set_columns(self, shape[1], source.names)
        return None, Inputs(source, shape, _bounded_block), y, weight

    def _encoded(self, X: Any, sample_weight: Any) -> tuple[TableEncoder | None, Any]:
        """Return the encoder of a table that needs one, and the inputs of a fit as numbers.

        A table with gaps, categories or dates needs one. Rows of weight 0 have no part in it.
        """
        if not is_frame(X) or holds_numbers_only(X):
            numbers = validation.check_inputs(self, X, reset=True, finite=False)
            if hasattr(numbers, "tocoo") or all_finite(numbers):
                validation.refuse_infinite(numbers, getattr(self, "feature_names_in_", None))
                return None, numbers
        columns, names = validation.check_columns(self, X, reset=True)
        weight = validation.check_weight(sample_weight, len(columns[0]))
        weights = np.ones(len(columns[0])) if weight is None else weight
        kept = weights > 0.0
        encoder = TableEncoder.of([column[kept] for column in columns], weights[kept])
        return encoder, encoder(columns, names)

    def _ridges(self) -> Array:
        if self.alphas is None:
            return RIDGES
        ridges = validation.as_real_array("alphas", self.alphas).ravel()
        if not len(ridges) or not (np.isfinite(ridges) & (ridges > 0.0)).all():
            raise ValueError(f"alphas={shown(self.alphas)} must hold positive, finite numbers.")
        return np.sort(ridges)

    def _splits(
        self, source: Passes | Raw, inputs: Inputs, y: Any, kept: Indices, check: Check
    ) -> Splits:
        """Return the rows that are left out together, as indices among the rows kept."""
        if self.cv is None:
            return None
        # A splitter needs the number of rows, but no inputs, which may not be in memory.
        X = source[0] if isinstance(source, tuple) else np.broadcast_to(0.0, inputs.shape)
        y = check(y, len(inputs))
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

    def _average(
        self, fit: FitRows, Y: Array, splits: Splits, strata: Indices, report: Report | None
    ) -> tuple[Average, RidgeTargets]:
        """Select networks, fit them to the targets Y of the rows kept, and return their average."""
        if check_verbose(self.verbose) and report is None:
            report = lines_of(type(self).__name__)
        budget = self.time_budget
        limits: dict[str, Any] = {
            "seconds": np.inf if budget is None else check_positive("time_budget", budget),
            "n_members": check_positive_integer("n_estimators", self.n_estimators),
            "report": report,
        }
        limits["device"] = check_device(self.device)
        width = None if self.width is None else check_positive_integer("width", self.width)
        settings = settings_for(limits["device"]).within(width)
        n = len(fit.kept)
        ridges = self._ridges()
        if n < 2:
            raise ValueError(f"X must have at least two rows, but has {n} (n_samples=1).")
        rng = parameters.check_generator(self.random_state)
        weights = np.ones(n) if fit.weight is None else fit.weight
        enough = ENOUGH if is_classifier(self) else ENOUGH_OF_NUMBERS
        targets = RidgeTargets(Y, weights, ridges, splits, enough)
        with ONE_THREAD():
            inputs = fit.inputs.of(fit.is_kept)
            average = fit_average(inputs, targets, strata, rng, settings, **limits)
        honest = average.honest & ~np.isnan(average.left_out[:, 0])
        return replace(average, honest=honest), targets

    def _keep(self, average: Average, targets: RidgeTargets, output: Any, fit: FitRows) -> None:
        """Set the attributes of an average that was fitted to the targets of the rows kept."""
        device = check_device(self.device)
        model = FittedModel.of(average, targets, output, fit, device)
        of_features = average.metric(fit.inputs.shape[1], targets.weight, device)
        # The metric of a column is the sum over its features.
        metric = np.bincount(model.origins, of_features, self.n_features_in_)
        self.input_metric_ = metric.astype(np.float64)
        self.cv_results_ = _results(average)
        self.best_score_ = model.left_out_score()
        self.model_, self._importances = model, None

    weights_ = property(attrgetter("model_.weights"))

    @property
    def estimators_(self) -> list[Member]:
        """The networks in the average."""
        return list(self.model_.members)

    @property
    def loo_decision_function_(self) -> Array:
        """The left-out prediction of each row."""
        return self.model_.output.decision(self.model_.evidence.left_out)

    @property
    def feature_importances_(self) -> Array:
        """The rises of the left-out error when a column is shuffled, as shares of their sum.

        The error is the squared error, or the error rate of a classifier. Rises of less than two
        standard errors are 0.
        """
        return self._shares_of_error()[0]

    @property
    def feature_importances_se_(self) -> Array:
        """The standard errors of `feature_importances_`."""
        return self._shares_of_error()[1]

    def _shares_of_error(self) -> Array:
        """Return importances and their standard errors, which are computed once."""
        if self._importances is None:
            self._importances = self.model_.importances(device=check_device(self.device))
        return self._importances

    def _get_fitted_attr_html(self, doc_link: str = "") -> Any:
        # Scikit-learn 1.9 shows all attributes, for which importances would be computed.
        shown = copy(self)
        if hasattr(self, "model_") and self._importances is None:
            shown._importances = np.full((2, self.n_features_in_), np.nan)
        return super(KARNetworkCV, shown)._get_fitted_attr_html(doc_link)

    def _layer_table(self) -> TextTable | None:
        return table_of_members(self.estimators_) if hasattr(self, "model_") else None

    def _networks(self) -> list[LocalNetwork]:
        return self.model_.networks if hasattr(self, "model_") else []

    def _of_rows(self, method: Callable[..., Any], X: Any, *options: Any) -> Any:
        """Return what a method of the model returns for inputs, which are checked first."""
        X = rows_of(self, X)
        return method(self.model_, X, *options, device=check_device(self.device))

    @lazy_for_dask
    def novelty(self, X: Any) -> NDArray[Any]:
        """Compute how unlike all training rows each row is, by the kernels of the networks.

        Predictions for rows of a novelty above 1 should not be trusted: they are farther from every
        training row than 95 % of the training rows are from all others. The distance of two rows is
        the logarithm of the inverse of their kernel, averaged over the networks, so that features
        that do not matter for predictions hardly count.

        Parameters
        ----------
        X : array-like, data frame or CSR matrix of shape (n_samples, n_features)
            The inputs.

        Returns
        -------
        ndarray of shape (n_samples,)
            The novelty, 0 for a row that equals a training row.
        """
        return self.model_.novelty(features_of(self, X))


def rows_of(net: KARNetworkCV, X: Any) -> Any:
    """Return checked inputs as the features of a fitted model."""
    check_is_fitted(net)
    encoder = net.model_.encoder
    if encoder is not None:
        return _bounded(encoder(*validation.check_columns(net, X, reset=False)))
    X = net.model_.filled(validation.check_inputs(net, X, reset=False, finite=False))
    validation.refuse_infinite(X, getattr(net, "feature_names_in_", None))
    return _bounded(X)


def features_of(net: KARNetworkCV, X: Any) -> Array:
    """Return checked inputs as features in a dense array in double precision."""
    return np.asarray(dense(rows_of(net, X)), dtype=np.float64)


def fit_and_report(net: KARNetworkCV, X: Any, y: Any, report: Report | None) -> None:
    """Fit an estimator, and call `report` after each step, whatever its `verbose` is."""
    net._fit((X, y, None), report)


def computed_importances(net: KARNetworkCV) -> Array | None:
    """Return importances and their standard errors if they were computed before."""
    return net._importances


def shares_of_error(net: KARNetworkCV, groups: Indices | None = None) -> Array:
    """Return importances and their standard errors; those of single columns are computed once.

    `groups` are the numbers of the groups of columns whose values are shuffled together.
    """
    if groups is not None and len(np.unique(groups)) < len(groups):
        return net.model_.importances(groups, check_device(net.device))
    shares = net._shares_of_error()
    return shares if groups is None else shares[:, np.argsort(groups)]


def encoder_of(step: Any) -> TableEncoder | None:
    """Return the encoder of a fitted estimator or step, if it has one."""
    if isinstance(step, ColumnEncoder):
        return step.encoder_
    return step.model_.encoder if isinstance(step, KARNetworkCV) else None


class ColumnEncoder(TransformerMixin, BaseEstimator):
    """The encoding of tables as a step of a pipeline, before networks that need numbers."""

    encoder_: TableEncoder

    def fit(self, X: Any, y: Any = None) -> Self:
        """Find the encoding of the columns of a table.

        Parameters
        ----------
        X : data frame or array of shape (n_samples, n_features)
            The table.
        y : object, optional
            Not used.

        Returns
        -------
        self
        """
        columns, _ = validation.check_columns(self, X, reset=True)
        self.encoder_ = TableEncoder.of(columns, np.ones(len(columns[0])))
        return self

    def transform(self, X: Any) -> Array:
        """Return the columns as numbers.

        Parameters
        ----------
        X : data frame or array of shape (n_samples, n_features)
            The table.

        Returns
        -------
        ndarray of shape (n_samples, n_encoded_columns)
        """
        check_is_fitted(self)
        return self.encoder_(*validation.check_columns(self, X, reset=False))


def _bounded(X: Any) -> Any:
    """Return inputs, the largest clipped and the smallest set to zero."""
    if hasattr(X, "tocoo"):
        return type(X)((_bounded(X.data), X.indices, X.indptr), shape=X.shape)
    if X.dtype == np.float32:  # whose numbers are all within the bounds
        return X
    sizes = np.abs(X)
    vanishing = (sizes < LEAST_INPUT) & (sizes > 0.0)
    if vanishing.any():
        X = np.where(vanishing, 0.0, X)
    return np.clip(X, -LARGEST_INPUT, LARGEST_INPUT) if (sizes > LARGEST_INPUT).any() else X


def _bounded_block(X: Any) -> Any:
    return _bounded(validation.plain_inputs(X))


def _results(average: Average) -> dict[str, NDArray[Any]]:
    """Return the candidates of the search, one column for each property."""
    tried = average.tried
    columns: dict[str, list[Any]] = {
        "view": [trial.shape.view for trial in tried],
        "kernel": [trial.kernel for trial in tried],
        "activation": [trial.activation for trial in tried],
        "scale": [trial.tuning.scale for trial in tried],
        "metric_rounds": [trial.rounds for trial in tried],
        "alpha": [trial.tuning.alpha for trial in tried],
        "squared_error": [trial.error for trial in tried],
        "averaged": [any(trial is each for each in average.fitted) for trial in tried],
    }
    return {name: np.array(values) for name, values in columns.items()}
