"""How many digits are right: ``python -m trust.numbers`` writes docs/trust/numbers.md."""

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
Contestant = Callable[[Dataset], Array]
COMMAND = "make trust"
N_SEEDS, N_QUICK = 50, 4
# The digits of a certified value.
CERTIFIED = 15.0
# The bars: digits behind the best driver, and multiples of n eps.
BEHIND, MULTIPLE = 0.5, 10.0


@dataclass(frozen=True)
class Bar:
    """What must hold, the figure that was measured, and whether it holds."""

    sentence: str
    figure: str
    met: bool


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, write the page; return 1 if a bar is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few seeds, and no page is written")
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
        write_page("numbers", "Right digits", COMMAND, counts, parts)
    return int(not all(bar.met for bar in bars))


def digits_of(dataset: Dataset) -> dict[str, float]:
    """Return how many digits of the worst coefficient are right, for each contestant."""
    return {name: right_digits(solve(dataset), dataset) for name, solve in contestants().items()}


def right_digits(coef: Array, dataset: Dataset) -> float:
    """Return the logarithmic relative error of the worst coefficient, between 0 and 15."""
    error = np.max(np.abs(coef - dataset.coef) / np.abs(dataset.coef))
    return float(np.clip(-np.log10(max(error, 10.0**-CERTIFIED)), 0.0, CERTIFIED))


def contestants() -> dict[str, Contestant]:
    """Return all that fit a data set, karnet's first; statsmodels if it is installed."""
    found: dict[str, Contestant] = {f"lstsq {solver}": _ours(solver) for solver in OURS}
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


def _ours(solver: str) -> Contestant:
    return lambda d: quiet_lstsq(d.A, d.b, bias=d.bias, solver=solver).coef


def _driver(driver: str) -> Contestant:
    return lambda d: lapack_lstsq(_full(d), d.b, lapack_driver=driver)[0]


def _statsmodels(regression: type, method: str) -> Contestant:
    def coef(dataset: Dataset) -> Array:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it says where it takes a matrix for singular
            return np.asarray(regression(dataset.b, _full(dataset)).fit(method=method).params)

    return coef


def _linear(make: Callable[[bool], LinearRegression | KARRegressor]) -> Contestant:
    def coef(dataset: Dataset) -> Array:
        net = make(dataset.bias).fit(dataset.A, dataset.b)
        if isinstance(net, LinearRegression):
            bias, weights = net.intercept_, net.coef_
        else:
            bias, weights = net.intercepts_[0][0], net.coefs_[0][:, 0]
        return np.concatenate([[bias], weights]) if dataset.bias else weights

    return coef


def family_bars(families: Mapping[str, Measured]) -> list[Bar]:
    """Return the bars over all families."""

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
            f"In every family auto's median log10 forward error is at most the best LAPACK "
            f"driver's + {BEHIND}, over seeds of which doubles can tell the rank",
            f"{behind:+.2f} in '{where}'",
            behind <= BEHIND,
        ),
        Bar(
            "The same over all seeds, with both at SciPy's cut-off of eps",
            f"{at_eps:+.2f} in '{there}'",
            at_eps <= BEHIND,
        ),
        Bar(
            f"The backward error of every instance is at most {MULTIPLE:.0f} n eps, with every "
            "solver",
            f"{backward:.2f} n eps in '{of}'",
            backward <= MULTIPLE,
        ),
        Bar(
            "The reported rank is right wherever there is a gap, with every solver",
            f"{ranks.count(True)} of {len(ranks)} right",
            all(ranks),
        ),
        Bar(
            "No solver is named that should not have been trusted: each one asked for, after "
            f"it has handed over what it gives up, meets the first bar, and the forward error of "
            f"every instance is at most {MULTIPLE:.0f} n eps times the problem's condition",
            f"{named:+.2f} in '{whose}'; {explained:.2f} n eps times the condition in '{at}'",
            named <= BEHIND and explained <= MULTIPLE,
        ),
    ]


def digits_bar(digits: Mapping[str, Mapping[str, float]]) -> Bar:
    """Return the bar over NIST's sets; of a single fit the best of many peers is the luckiest."""

    def lost(each: Mapping[str, float], our: str) -> float:
        peers = [value for who, value in each.items() if not who.startswith(("lstsq", "KAR"))]
        return float(np.median(peers)) - each[our]

    ours = [*(f"lstsq {solver}" for solver in OURS), "KARRegressor"]
    most, where = max(
        (lost(each, our), f"{name}, {our}") for name, each in digits.items() for our in ours
    )
    return Bar(
        f"On every set of NIST every solver and KARRegressor have at most {BEHIND} digits fewer "
        "than the median peer",
        f"{most:+.2f} in '{where}'",
        most <= BEHIND,
    )


def page_parts(
    bars: Sequence[Bar],
    digits: Mapping[str, Mapping[str, float]],
    families: Mapping[str, Measured],
) -> list[str]:
    """Return the page: bars, NIST's sets, families."""
    return [
        "## What must hold",
        table(
            ["bar", "measured", "verdict"],
            [[bar.sentence, bar.figure, "met" if bar.met else "missed"] for bar in bars],
        ),
        "## NIST's linear reference data sets",
        NIST_TEXT,
        digits_table(digits),
        "## Families from easy to hopeless",
        FAMILIES_TEXT,
        families_table(families),
        "## Where doubles cannot tell the rank",
        UNCLEAR_TEXT,
        unclear_table(families),
    ]


NIST_TEXT = """\
Digits of the worst coefficient that agree with the certified value, at most 15. The certified
values were checked: the solution of the typed decimal numbers to 50 digits rounds to each of them.
*Rounding alone* is the exact solution of the data once they are doubles: no more can be asked of a
method that reads doubles, though it may be lucky."""

FAMILIES_TEXT = """\
Medians over seeds of the decimal logarithm of the relative forward error, against solutions to 50
digits of the matrix as stored. Half of the right-hand sides can be fitted, half leave a large
residual. Matrices of rank r are products of whole numbers, so that rank and minimum-norm solution
are known exactly; *disturbed* sets are NIST's with noise, in random order. LAPACK's drivers run at
karnet's cut-off of n eps and at SciPy's of eps, and the best of all six counts. A rank is *clear*
if no singular value (of columns centred, with a bias, and scaled to unit length) is within a factor
of three of the cut-off, and as many as the exact rank are above. Elsewhere it is a convention
whether a direction is left out, worth digits to one and costing them to others: such seeds are
compared only where a family has no others, and at the same cut-off. Backward errors are the
smallest relative change of A alone for which the coefficients are a solution, in n eps, the worst
of all four solvers; float32 matrices are held to the eps of float64, which they are solved in.
Ranks count as right or wrong wherever there is a gap. A solver that is asked for and does not trust
itself hands over to the next."""


UNCLEAR_TEXT = """\
Families with seeds of which a singular value is about the cut-off, so that one method keeps a
direction of which few digits are left and another leaves it out. By how many digits auto is behind
the best of LAPACK's drivers over all seeds, at two cut-offs: karnet's of n eps, as
`numpy.linalg.lstsq` has it with the larger side for n, and SciPy's of eps, for auto with
`rcond=eps`. That is worth digits where a small direction is real, as it is in all of these, and
takes rounding for a direction where columns depend on each other: so it is not karnet's own."""


def unclear_table(families: Mapping[str, Measured]) -> str:
    """Return families that have seeds about the cut-off, with both at the same one."""
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
    """Return NIST's sets as rows, contestants as columns."""
    names = list(next(iter(digits.values())))
    limits = {d.name: right_digits(exact_solution(_full(d), d.b), d) for d in DATASETS}
    return table(
        ["set", *names, "rounding alone"],
        [
            [name, *(f"{each[who]:.1f}" for who in names), f"{limits[name]:.1f}"]
            for name, each in digits.items()
        ],
    )


def families_table(families: Mapping[str, Measured]) -> str:
    """Return families as rows."""
    return table(
        [
            "family",
            *OURS,
            "best of LAPACK",
            "auto behind",
            "backward",
            "ranks right",
            "clear ranks",
            "auto named",
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
