"""KARClassifierCV and KARRegressorCV as a model of AutoGluon."""

from __future__ import annotations

from time import perf_counter
from typing import Any, ClassVar

from threadpoolctl import threadpool_limits

from .._search.settings import SETTINGS
from .._util.extras import require
from ..selection import KARClassifierCV, KARRegressorCV

require("a model of AutoGluon", "autogluon", "autogluon.core")

from autogluon.core.models import AbstractModel  # noqa: E402
from autogluon.core.utils.exceptions import TimeLimitExceeded  # noqa: E402

__all__ = ["KARModel"]

# The share of the time limit that a fit may take; the rest is for predictions and for files.
TIME_SHARE = 0.95
# Kernel matrices in memory at the same time, at most.
N_KERNELS = 8
# Copies of the encoded inputs in memory at the same time, at most: each network keeps the rows in
# single precision.
N_COPIES = 16
# Indicators that a categorical column has at most.
MOST_INDICATORS = 100
# Bytes of a number in double precision.
BYTES = 8


class KARModel(AbstractModel):
    """Average of infinitely wide networks, selected by left-out rows, as a model of AutoGluon.

    The model is a `KARClassifierCV` or a `KARRegressorCV`, which encodes categories and fills gaps
    itself. All parameters of these estimators are hyper-parameters of the model. The time limit of
    AutoGluon becomes the time budget of the fit, and BLAS uses as many threads as the fit is given
    cores. With a GPU, ``device="cuda"`` is the default. Validation rows are not used: networks are
    selected by their left-out predictions for the training rows.

    Parameters
    ----------
    **kwargs
        The parameters of ``autogluon.core.models.AbstractModel``.

    Examples
    --------
    >>> from autogluon.tabular import TabularPredictor  # doctest: +SKIP
    >>> predictor = TabularPredictor("price").fit(
    ...     houses, hyperparameters={KARModel: {}}
    ... )  # doctest: +SKIP
    """

    ag_key = "KAR"
    ag_name = "KAR"
    ag_priority = 65
    seed_name = "random_state"
    default_resources_physical_cores_only = True
    _supported_problem_types: ClassVar[list[str]] = ["binary", "multiclass", "regression"]

    def _fit(
        self,
        X: Any,
        y: Any,
        X_val: Any = None,
        y_val: Any = None,
        time_limit: float | None = None,
        sample_weight: Any = None,
        num_cpus: int | None = None,
        num_gpus: float | None = None,
        **kwargs: Any,
    ) -> None:
        """Fit the estimator to a data frame, within the time limit and with the given cores."""
        start = perf_counter()
        X = self.preprocess(X, y=y, is_train=True)
        params = self._get_model_params()
        if num_gpus:
            params.setdefault("device", "cuda")
        if time_limit is not None:
            left = TIME_SHARE * time_limit - (perf_counter() - start)
            if left <= 0.0:
                raise TimeLimitExceeded
            params["time_budget"] = min(left, params.get("time_budget") or left)
        estimator = KARRegressorCV if self.problem_type == "regression" else KARClassifierCV
        with threadpool_limits(num_cpus or None, user_api="blas"):
            self.model = estimator(**params).fit(X, y, sample_weight=sample_weight)

    @classmethod
    def _estimate_memory_usage_static(
        cls, *, X: Any, hyperparameters: dict[str, Any] | None = None, **kwargs: Any
    ) -> int:
        """Estimate the bytes of memory of a fit: kernel matrices, and copies of the inputs."""
        width = (hyperparameters or {}).get("width")
        n = min(len(X), width or SETTINGS.most_rows_of_leaf)
        counts = [X[name].nunique() if X[name].dtype.kind == "O" else 1 for name in X.columns]
        n_columns = sum(min(count, MOST_INDICATORS) for count in counts)
        return int(BYTES * (N_KERNELS * n * n + N_COPIES * len(X) * n_columns))

    def _more_tags(self) -> dict[str, bool]:
        """Return that the model can be fitted to all rows, without validation rows."""
        return {"can_refit_full": True}
