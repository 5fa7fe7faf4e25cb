"""Search for wrong labels: `python -m trust.wrong_labels` writes docs/trust/wrong-labels.md."""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from time import perf_counter, process_time
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from karnet import KARClassifierCV
from karnet._model.calibration import Calibration
from trust import coverage
from trust.record import table, write_page

Array = NDArray[Any]
Codes = NDArray[np.intp]
Qualities = dict[str, Array]  # quality of the label of each row, by the name of the score
Contender = Callable[[Array, Codes, int], Qualities]
Setting = tuple[str, float]  # how labels are changed, and the share of them
COMMAND = "make trust"
MARGIN, CONFIDENCE = "margin", "probability"
SCORES = (MARGIN, CONFIDENCE)
HOW = ("any class", "neighbouring class")
SHARES = (0.1, 0.2)
SETTINGS = tuple((how, share) for how in HOW for share in SHARES)
# Largest number of rows of a data set: longer ones are sampled.
MOST_ROWS = 1000
# Least number of rows of a class that is kept.
FEWEST_OF_CLASS = 10
N_FOLDS, N_TREES = 5, 500


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print and write the page; return 1 if a requirement is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="two data sets, no page")
    quick, start = parser.parse_args(arguments).quick, perf_counter()
    names = ["iris", "wine"] if quick else coverage.classified()
    seconds = dict.fromkeys(CONTENDERS, 0.0)
    found = {name: precisions(*load(name), CONTENDERS, seconds, name) for name in names}
    parts, met = page_parts(found, seconds)
    print("\n\n".join(parts))
    if not quick:
        counts = f"{len(found)} data sets in {perf_counter() - start:.0f} s"
        write_page("wrong-labels", "Search for wrong labels", COMMAND, counts, parts)
    return int(not met)


def load(name: str) -> tuple[Array, Codes]:
    """Return at most MOST_ROWS rows of a data set, without rare classes and constant columns."""
    X, y = coverage.load(name)
    some = np.random.default_rng(0).permutation(len(y))[:MOST_ROWS]
    X, y = X[some], y[some]
    kept = np.bincount(y)[y] >= FEWEST_OF_CLASS
    X = X[kept]
    return X[:, np.ptp(X, axis=0) > 0.0], np.unique(y[kept], return_inverse=True)[1]


def neighbours(X: Array, y: Codes) -> Codes:
    """Return for each class that with the nearest mean in standardised inputs."""
    Z = StandardScaler().fit_transform(X)
    means = np.array([Z[y == k].mean(axis=0) for k in range(y.max() + 1)])
    distances = np.linalg.norm(means[:, None] - means, axis=2)
    np.fill_diagonal(distances, np.inf)
    return np.asarray(distances.argmin(axis=1))


def with_wrong_labels(
    X: Array, y: Codes, setting: Setting, rng: np.random.Generator
) -> tuple[Codes, NDArray[np.bool_]]:
    """Return labels of which a share is changed to another class, and which are changed."""
    how, share = setting
    changed = rng.permutation(len(y)) < round(share * len(y))
    shift = rng.integers(1, y.max() + 1, len(y))
    other = (y + shift) % (y.max() + 1) if how == HOW[0] else neighbours(X, y)[y]
    # A class of which no row is left has no code.
    return np.unique(np.where(changed, other, y), return_inverse=True)[1], changed


def left_out_scores(X: Array, y: Codes, seed: int) -> Qualities:
    """Return margins and probabilities of the labels by karnet's left-out predictions."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        net = KARClassifierCV(random_state=seed).fit(X, y)
    scores = net.loo_decision_function_
    if scores.ndim == 1:
        # A score is the share of a class, and the scores of two classes add up to one.
        scores = np.column_stack([1.0 - scores, 1.0 + scores]) / 2.0
    calibration = Calibration(net.knee_, net.temperature_, net.doubt_)
    probabilities = calibration.probabilities(scores)
    return {MARGIN: margins(scores, y), CONFIDENCE: probabilities[np.arange(len(y)), y]}


def margins(scores: Array, y: Codes) -> Array:
    """Return the score of the label of each row less the largest one of another class."""
    rows, others = np.arange(len(y)), scores.copy()
    others[rows, y] = -np.inf
    return np.asarray(scores[rows, y] - others.max(axis=1))


def qualities(y: Codes, probabilities: Array) -> Qualities:
    """Return cleanlab's scores of labels, which are computed here if it is not installed."""
    try:
        from cleanlab.rank import get_label_quality_scores
    except ImportError:
        confidence = probabilities[np.arange(len(y)), y]
        return {MARGIN: (margins(probabilities, y) + 1.0) / 2.0, CONFIDENCE: confidence}
    methods = zip(SCORES, ("normalized_margin", "self_confidence"), strict=True)
    return {
        name: get_label_quality_scores(y, probabilities, method=method) for name, method in methods
    }


def forest(X: Array, y: Codes, seed: int) -> Qualities:
    """Return scores by the out-of-bag probabilities of a random forest."""
    trees = RandomForestClassifier(N_TREES, oob_score=True, random_state=seed, n_jobs=1)
    return qualities(y, trees.fit(X, y).oob_decision_function_)


def under_folds(estimator: Any, X: Array, y: Codes, seed: int) -> Qualities:
    """Return scores by the probabilities that fits without the fold of a row predict for it."""
    folds = StratifiedKFold(N_FOLDS, shuffle=True, random_state=seed)
    with warnings.catch_warnings():
        # Few rows of a class remain if its labels are changed.
        warnings.filterwarnings("ignore", "The least populated class", UserWarning)
        warnings.filterwarnings("ignore", "Number of classes in training fold", RuntimeWarning)
        warnings.filterwarnings("ignore", "X does not have valid feature names", UserWarning)
        found = cross_val_predict(estimator, X, y, cv=folds, method="predict_proba")
    return qualities(y, found)


def boosting(X: Array, y: Codes, seed: int) -> Qualities:
    """Return scores by LightGBM under folds."""
    from lightgbm import LGBMClassifier

    return under_folds(LGBMClassifier(n_jobs=1, verbose=-1, random_state=seed), X, y, seed)


def logistic(X: Array, y: Codes, seed: int) -> Qualities:
    """Return scores by logistic regression of standardised inputs under folds."""
    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=2000))
    return under_folds(model, X, y, seed)


OURS = "karnet"
CONTENDERS: dict[str, Contender] = {
    OURS: left_out_scores,
    "forest": forest,
    "LightGBM": boosting,
    "logistic": logistic,
}
# Average precision for each setting, contender and score.
Precisions = dict[tuple[Setting, str, str], float]


def precisions(
    X: Array,
    y: Codes,
    contenders: Mapping[str, Contender],
    seconds: dict[str, float],
    name: str = "",
) -> Precisions:
    """Return the average precision of each score on one data set; add CPU times to `seconds`."""
    found: Precisions = {}
    for number, setting in enumerate(SETTINGS):
        rng = np.random.default_rng([number, *name.encode()])
        given, changed = with_wrong_labels(X, y, setting, rng)
        for contender, rate in contenders.items():
            start = process_time()
            scores = rate(X, given, number)
            seconds[contender] += process_time() - start
            for score, quality in scores.items():
                precision = average_precision_score(changed, -quality)
                found[setting, contender, score] = float(precision)
    return found


def chosen(found: Mapping[str, Precisions], setting: Setting, contender: str) -> Array:
    """Return the average precisions of one contender, for each data set.

    Other contenders have the score that is better on average over all data sets in this setting.
    Ours is, for each data set, that which is better on average over all other data sets.
    """
    each = np.array([[of[setting, contender, score] for score in SCORES] for of in found.values()])
    if contender != OURS or len(each) == 1:
        return np.asarray(each[:, each.mean(axis=0).argmax()])
    total = [
        [sum(of[s, contender, score] for s in SETTINGS) for score in SCORES]
        for of in found.values()
    ]
    others = np.sum(total, axis=0) - total
    return np.asarray(each[np.arange(len(each)), others.argmax(axis=1)])


def with_error(differences: Array) -> str:
    """Return the mean of differences with its standard error, in percentage points."""
    error = np.std(differences, ddof=1) / np.sqrt(len(differences)) if len(differences) > 1 else 0.0
    return f"{100 * np.mean(differences):+.1f} ± {100 * error:.1f}"


def percent(values: Any) -> str:
    """Return the mean in percent."""
    return f"{100 * float(np.mean(values)):.1f}"


def page_parts(
    found: Mapping[str, Precisions], seconds: Mapping[str, float]
) -> tuple[list[str], bool]:
    """Return the paragraphs and tables of the page, and whether all requirements are met."""
    contenders, peers = list(seconds), [name for name in seconds if name != OURS]
    values = {(s, c): chosen(found, s, c) for s in SETTINGS for c in contenders}
    above = {
        (s, c): float(np.mean(values[s, OURS] - values[s, c])) for s in SETTINGS for c in peers
    }
    missed = [f"{title(s)}, {c}" for (s, c), gap in above.items() if gap <= 0.0]
    verdict = "met" if not missed else f"**missed**: {'; '.join(missed)}"
    rows = [
        [
            title(s),
            *(percent(values[s, c]) for c in contenders),
            *(with_error(values[s, OURS] - values[s, c]) for c in peers),
        ]
        for s in SETTINGS
    ]
    parts = [
        *introduction(len(found)),
        "## Average precision",
        "The mean average precision over the data sets, in percent, and the mean difference from "
        "karnet with its standard error over data sets. Requirement: karnet has a higher mean "
        f"than each of the others in each row ({verdict}).",
        table(["labels changed", *contenders, *(f"karnet − {c}" for c in peers)], rows),
        "## CPU time",
        f"The CPU time of all {len(found) * len(SETTINGS)} tables, in seconds on one thread.",
        table(contenders, [[f"{seconds[c]:.0f}" for c in contenders]]),
        *both_scores(found, contenders),
        "## Data sets",
        "The mean average precision over the four rows above, in percent.",
        table(["data set", *contenders], each_set(found, values, contenders)),
    ]
    return parts, not missed


def title(setting: Setting) -> str:
    """Return the name of a setting."""
    how, share = setting
    return f"{share:.0%}, {how}"


def introduction(n: int) -> list[str]:
    """Return the paragraphs that say what is measured."""
    return [
        f"Labels of {n} data sets (at most {MOST_ROWS} rows of each, classes of at least "
        f"{FEWEST_OF_CLASS} rows) are changed at random: to any other class with the same "
        "probability, or to the neighbouring class, which is the one with the nearest mean in "
        "standardised inputs. For two classes both are the same, with other rows. Rows are then "
        "sorted by the quality of their labels, and the average precision of the changed ones is "
        "computed. Labels that were wrong from the start count as correct.",
        "karnet: one fit of `KARClassifierCV()`. The quality is the margin in "
        "`loo_decision_function_`, the score of the label less the largest of another class, or "
        "the calibrated left-out probability of the label. For each data set, the one is taken "
        "that is better on average over all other data sets and all four rows of the table. The "
        "others use the scores "
        "`normalized_margin` and `self_confidence` "
        f"{peer_scores()}, and in each row the one that is better on average is taken: "
        f"out-of-bag probabilities of a random forest of {N_TREES} trees, LightGBM under "
        f"{N_FOLDS} folds, and logistic regression of standardised inputs under {N_FOLDS} folds.",
    ]


def peer_scores() -> str:
    """Return whose code computes the scores of the other libraries."""
    try:
        from cleanlab.version import __version__ as version
    except ImportError:
        return "as cleanlab defines them (it is not installed: they are computed here)"
    return f"of cleanlab {version}"


def both_scores(found: Mapping[str, Precisions], contenders: Sequence[str]) -> list[str]:
    """Return a table of the mean average precision of both scores."""
    rows = [
        [
            title(s),
            *(
                " / ".join(percent([of[s, c, score] for of in found.values()]) for score in SCORES)
                for c in contenders
            ),
        ]
        for s in SETTINGS
    ]
    return [
        "## Both scores",
        "The mean average precision by the margin / by the probability of the label, in percent.",
        table(["labels changed", *contenders], rows),
    ]


def each_set(
    found: Mapping[str, Precisions],
    values: Mapping[tuple[Setting, str], Array],
    contenders: Sequence[str],
) -> list[list[str]]:
    """Return the rows of the table of data sets."""
    means = {c: np.mean([values[s, c] for s in SETTINGS], axis=0) for c in contenders}
    rows = [[name, *(percent(means[c][k]) for c in contenders)] for k, name in enumerate(found)]
    return [*rows, ["mean", *(percent(means[c]) for c in contenders)]]


if __name__ == "__main__":
    sys.exit(main())
