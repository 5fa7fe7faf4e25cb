"""Accuracy of least squares, in digits: `python -m trust.numbers` writes docs/trust/numbers.md."""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lstsq as lapack_lstsq
from sklearn.linear_model import LinearRegression

from karnet import KARRegressor
from trust.exact import exact_solution
from trust.families import FAMILIES
from trust.matrices import with_ones
from trust.measure import AT_EPS, DRIVERS, OURS, Measured, measure, quiet_lstsq
from trust.nist import DATASETS, Dataset
from trust.record import table, write_page

Array = NDArray[np.float64]
Method = Callable[[Dataset], Array]
COMMAND = "make trust"
# Seeds of every family.
N_SEEDS = 50
# Seeds with --quick.
N_QUICK = 4
# The digits of a certified value.
CERTIFIED = 15.0
# Digits by which a solver may be behind the best driver.
BEHIND = 0.5
# Largest error, in multiples of n eps.
MULTIPLE = 10.0


@dataclass(frozen=True)
class Bar:
    """A requirement, the figure that was measured, and whether the requirement is met."""

    sentence: str
    figure: str
    met: bool


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print and write the page; return 1 if a requirement is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="use few seeds and write no page")
    quick = parser.parse_args(arguments).quick
    seeds, start = range(N_QUICK if quick else N_SEEDS), perf_counter()
    digits = {dataset.name: digits_of(dataset) for dataset in DATASETS}
    families = {name: measure(family, seeds) for name, family in FAMILIES.items()}
    bars = [*family_bars(families), digits_bar(digits)]
    parts = page_parts(bars, digits, families)
    print("\n\n".join(parts))
    if not quick:
        n_solved = sum(len(each.backward) for each in families.values())
        counts = (
            f"{len(families)} families, {len(seeds)} seeds each, {n_solved} solutions "
            f"of `lstsq`, in {perf_counter() - start:.0f} s"
        )
        write_page("numbers", "Accuracy of least squares", COMMAND, counts, parts)
    return int(not all(bar.met for bar in bars))


def digits_of(dataset: Dataset) -> dict[str, float]:
    """Return the accuracy, in digits, of the worst coefficient for each method."""
    return {name: accurate_digits(solve(dataset), dataset) for name, solve in methods().items()}


def accurate_digits(coef: Array, dataset: Dataset) -> float:
    """Return the logarithmic relative error of the worst coefficient, between 0 and 15."""
    error = np.max(np.abs(coef - dataset.coef) / np.abs(dataset.coef))
    return float(np.clip(-np.log10(max(error, 10.0**-CERTIFIED)), 0.0, CERTIFIED))


def methods() -> dict[str, Method]:
    """Return all methods that fit a data set: karnet's, then those of other libraries."""
    found: dict[str, Method] = {f"lstsq {solver}": _ours(solver) for solver in OURS}
    found["KARRegressor"] = _linear(lambda bias: KARRegressor((), fit_intercept=bias))
    found["numpy"] = lambda d: np.linalg.lstsq(_full(d), d.b)[0]
    found |= {f"scipy {driver}": _driver(driver) for driver in DRIVERS}
    found["LinearRegression"] = _linear(lambda bias: LinearRegression(fit_intercept=bias))
    try:
        from statsmodels.api import OLS
    except ImportError:
        return found
    return found | {f"statsmodels {method}": _statsmodels(OLS, method) for method in ("pinv", "qr")}


def _full(dataset: Dataset) -> Array:
    return with_ones(dataset.A) if dataset.bias else dataset.A


def _ours(solver: str) -> Method:
    return lambda d: quiet_lstsq(d.A, d.b, bias=d.bias, solver=solver).coef


def _driver(driver: str) -> Method:
    return lambda d: lapack_lstsq(_full(d), d.b, lapack_driver=driver)[0]


def _statsmodels(regression: type, method: str) -> Method:
    def coef(dataset: Dataset) -> Array:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # statsmodels warns if it considers a matrix singular
            return np.asarray(regression(dataset.b, _full(dataset)).fit(method=method).params)

    return coef


def _linear(make: Callable[[bool], LinearRegression | KARRegressor]) -> Method:
    def coef(dataset: Dataset) -> Array:
        net = make(dataset.bias).fit(dataset.A, dataset.b)
        if isinstance(net, LinearRegression):
            bias, weights = net.intercept_, net.coef_
        else:
            bias, weights = net.intercepts_[0][0], net.coefs_[0][:, 0]
        return np.concatenate([[bias], weights]) if dataset.bias else weights

    return coef


def family_bars(families: Mapping[str, Measured]) -> list[Bar]:
    """Return the requirements on all families."""

    def worst(value: Callable[[Measured], float]) -> tuple[float, str]:
        return max((value(measured), name) for name, measured in families.items())

    behind, where = worst(lambda each: each.behind("auto"))
    at_eps, there = worst(lambda each: each.behind_everywhere(AT_EPS, AT_EPS))
    named, whose = worst(lambda each: max(each.behind(solver) for solver in OURS))
    backward, of = worst(lambda each: max(each.backward))
    explained, at = worst(lambda each: max(each.explained, default=0.0))
    ranks = [right for each in families.values() for right in each.ranks]
    return [
        Bar(
            "In every family the median log10 forward error of auto is at most that of the best "
            f"LAPACK driver + {BEHIND}, over seeds with a clear rank",
            f"{behind:+.2f} in '{where}'",
            behind <= BEHIND,
        ),
        Bar(
            "The same over all seeds, with both at SciPy's cut-off of eps",
            f"{at_eps:+.2f} in '{there}'",
            at_eps <= BEHIND,
        ),
        Bar(
            f"The backward error is at most {MULTIPLE:.0f} n eps for every instance and every "
            "solver",
            f"{backward:.2f} n eps in '{of}'",
            backward <= MULTIPLE,
        ),
        Bar(
            "Every solver reports the correct rank wherever there is a gap in the singular values",
            f"{ranks.count(True)} of {len(ranks)} correct",
            all(ranks),
        ),
        Bar(
            "The reported solver is reliable for the matrix: every requested solver, with its "
            "fallback on matrices that it rejects, meets the first requirement, and the forward "
            f"error of every instance is at most {MULTIPLE:.0f} n eps times the condition of the "
            "problem",
            f"{named:+.2f} in '{whose}'; {explained:.2f} n eps times the condition in '{at}'",
            named <= BEHIND and explained <= MULTIPLE,
        ),
    ]


def digits_bar(digits: Mapping[str, Mapping[str, float]]) -> Bar:
    """Return the requirement on NIST's data sets.

    It compares with the median of the other libraries: the best of many is best by chance.
    """

    def lost(each: Mapping[str, float], our: str) -> float:
        peers = [value for who, value in each.items() if not who.startswith(("lstsq", "KAR"))]
        return float(np.median(peers)) - each[our]

    ours = [*(f"lstsq {solver}" for solver in OURS), "KARRegressor"]
    most, where = max(
        (lost(each, our), f"{name}, {our}") for name, each in digits.items() for our in ours
    )
    return Bar(
        f"On every NIST data set every solver and KARRegressor have at most {BEHIND} digits fewer "
        "than the median of the other libraries",
        f"{most:+.2f} in '{where}'",
        most <= BEHIND,
    )


def page_parts(
    bars: Sequence[Bar],
    digits: Mapping[str, Mapping[str, float]],
    families: Mapping[str, Measured],
) -> list[str]:
    """Return the page: requirements, NIST's data sets, families."""
    return [
        "## Requirements",
        table(
            ["requirement", "measured", "verdict"],
            [[bar.sentence, bar.figure, "met" if bar.met else "missed"] for bar in bars],
        ),
        "## NIST's reference data sets for linear regression",
        NIST_TEXT,
        digits_table(digits),
        "## Families of matrices, from well-conditioned to singular",
        FAMILIES_TEXT,
        families_table(families),
        "## Families without a clear rank",
        UNCLEAR_TEXT,
        unclear_table(families),
    ]


NIST_TEXT = """\
Each figure is the number of digits of the worst coefficient that agree with the certified value, at
most 15. The certified values were checked: each is the rounded solution, computed to 50 digits, of
the data in decimal numbers. *Rounding alone* is the exact solution after the data are rounded to
double precision. No method that reads doubles can be expected to do better, although it may by
chance."""

FAMILIES_TEXT = """\
The columns of solvers show medians over seeds of the decimal logarithm of the relative forward
error. The reference is a solution to 50 digits for the matrix as stored. Half of the right-hand
sides can be fitted exactly, the other half leave a large residual. Matrices of rank r are products
of matrices of integers, so that their rank and minimum-norm solution are known exactly. *Disturbed*
data sets are NIST's with added noise and in random order. LAPACK's drivers run at karnet's cut-off
of n eps and at SciPy's cut-off of eps; the best of these six results counts.

A rank is *clear* if no singular value is within a factor of three of the cut-off and the number
above it equals the exact rank. (Columns are scaled to unit length first, and centred if there is a
bias.) Where a rank is not clear, it is a matter of convention whether a direction is left out:
leaving it out gains digits for one problem and loses them for another. Such seeds are compared only
if a family has no others, and then at the same cut-off.

The backward error is the smallest relative change of A alone for which the coefficients are a
solution. It is given in units of n eps, for the worst of all four solvers. Matrices in float32 are
solved in float64 and held to its eps. Ranks count as correct or wrong wherever there is a gap in
the singular values. If a requested solver rejects a matrix, the next solver is used."""


UNCLEAR_TEXT = """\
In some seeds of these families a singular value is close to the cut-off. One method then keeps a
direction that has only few accurate digits, and another method leaves it out. The table shows by
how many digits auto is behind the best LAPACK driver over all seeds, at two cut-offs: karnet's of n
eps, which `numpy.linalg.lstsq` uses with the larger dimension for n, and SciPy's of eps, for which
auto is called with `rcond=eps`. The smaller cut-off gains digits where a small direction is real,
as in all of these families. It mistakes rounding errors for a direction where columns are linearly
dependent, and is therefore not karnet's default."""


def unclear_table(families: Mapping[str, Measured]) -> str:
    """Return the table of families with seeds whose rank is not clear."""
    return table(
        ["family", "both at n eps", "both at eps", "auto at n eps, LAPACK at eps", "clear ranks"],
        [
            [
                name,
                f"{each.behind_everywhere():+.2f}",
                f"{each.behind_everywhere(AT_EPS, AT_EPS):+.2f}",
                f"{each.behind_everywhere('', AT_EPS):+.2f}",
                f"{sum(each.clear)} of {len(each.clear)}",
            ]
            for name, each in families.items()
            if not all(each.clear)
        ],
    )


def digits_table(digits: Mapping[str, Mapping[str, float]]) -> str:
    """Return a table with a row per data set of NIST and a column per method."""
    names = list(next(iter(digits.values())))
    limits = {d.name: accurate_digits(exact_solution(_full(d), d.b), d) for d in DATASETS}
    return table(
        ["data set", *names, "rounding alone"],
        [
            [name, *(f"{each[who]:.1f}" for who in names), f"{limits[name]:.1f}"]
            for name, each in digits.items()
        ],
    )


def families_table(families: Mapping[str, Measured]) -> str:
    """Return a table with a row per family."""
    return table(
        [
            "family",
            *OURS,
            "best of LAPACK",
            "auto behind by",
            "backward error",
            "correct ranks",
            "clear ranks",
            "solver of auto",
        ],
        [
            [
                name,
                *(f"{each.median(solver):.1f}" for solver in OURS),
                f"{each.median(each.best):.1f} ({each.best})",
                f"{each.behind('auto'):+.2f}",
                f"{max(each.backward):.2f}",
                f"{sum(each.ranks)} of {len(each.ranks)}" if each.ranks else "no gap",
                f"{sum(each.clear)} of {len(each.clear)}",
                ", ".join(sorted(set(each.used))),
            ]
            for name, each in families.items()
        ],
    )


if __name__ == "__main__":
    sys.exit(main())
