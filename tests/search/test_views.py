"""Views of a table: what they keep, and what they do not depend on."""

import numpy as np
import pytest

from karnet._network.infinite_width import RidgeTargets
from karnet._search.views import (
    VIEWS,
    Stretched,
    WithScores,
    distinct_views,
    rotated,
    shortened,
    squares_of_features,
    stretch,
    stretched,
    total_variance,
)

rng = np.random.default_rng(0)
X = np.column_stack(
    [
        rng.standard_normal(60),
        rng.exponential(size=60),
        rng.integers(0, 2, 60),
        rng.integers(0, 5, 60),
    ]
).astype(float)
ONES = np.ones(60)
# The views that give every feature the variance of one.
EVEN = ["standard", "ranks", "indicators"]


@pytest.mark.parametrize("name", EVEN)
def test_columns_have_mean_zero_and_each_feature_the_variance_of_one(name):
    view = VIEWS[name](X, ONES)
    A = view(X)
    np.testing.assert_allclose(A.mean(axis=0), 0.0, atol=1e-12)
    variance = np.bincount(view.features, A.var(axis=0))
    np.testing.assert_allclose(variance, 1.0, rtol=1e-10)


@pytest.mark.parametrize("name", ["ranks", "indicators"])
def test_ranks_do_not_see_an_increasing_function(name):
    changed = np.column_stack([np.exp(X[:, 0]), X[:, 1] ** 3, X[:, 2:]])
    np.testing.assert_allclose(VIEWS[name](X, ONES)(X), VIEWS[name](changed, ONES)(changed))


@pytest.mark.parametrize("name", EVEN)
def test_weights_are_repeats(name):
    weight = rng.integers(1, 4, 60).astype(float)
    repeated = np.repeat(X, weight.astype(int), axis=0)
    weighted = VIEWS[name](X, weight)(X)
    np.testing.assert_allclose(weighted, VIEWS[name](repeated, np.ones(len(repeated)))(X))


@pytest.mark.parametrize("name", EVEN)
def test_constant_columns_are_left_out(name):
    view = VIEWS[name](np.column_stack([np.full(60, 7.0), X[:, :2]]), ONES)
    assert view.features.tolist() == [1, 2]


@pytest.mark.parametrize("name", EVEN)
def test_offset_and_unit_do_not_matter(name):
    moved = 1e6 + 1e3 * X
    np.testing.assert_allclose(VIEWS[name](moved, ONES)(moved), VIEWS[name](X, ONES)(X), atol=1e-7)


@pytest.mark.parametrize("name", EVEN)
def test_what_is_far_outside_is_moved_to_the_edge(name):
    view = VIEWS[name](X, ONES)
    assert np.abs(view(np.full((1, 4), 1e300))).max() < 20.0


def test_a_heavy_tail_does_not_squeeze_the_rest():
    column = np.append(rng.standard_normal(99), 1e9)[:, None]
    A = VIEWS["standard"](column, np.ones(100))(column)
    assert 0.5 < A[:99].std() < 1.5


def test_many_values_far_from_the_quartiles_are_no_tail():
    column = np.append(rng.standard_normal(1800), rng.uniform(20.0, 30.0, 200))[:, None]
    A = VIEWS["standard"](column, np.ones(2000))(column)
    assert len(np.unique(A)) > 1990


@pytest.mark.parametrize("share", [1e-6, 1e-3, 0.1])
def test_a_shortened_root_keeps_the_distances_but_for_a_share(share):
    Q, _ = np.linalg.qr(rng.standard_normal((4, 4)))
    root = Q @ np.diag([1.0, 0.3, 1e-2, 1e-4]) @ Q.T
    short = shortened(root, share)
    rows = rng.standard_normal((2000, 4))
    squares = [np.sum(stretch(rows, each) ** 2, axis=1).mean() for each in (root, short)]
    assert short.shape == (4, {1e-6: 3, 1e-3: 2, 0.1: 1}[share])
    assert 0.0 <= squares[0] - squares[1] <= 1.2 * share * squares[0]


def test_a_diagonal_is_not_shortened():
    root = np.array([1.0, 1e-6])
    assert shortened(root, 0.5) is root
    assert shortened(np.zeros((0, 0)), 0.5).shape == (0, 0)


def test_equal_views_are_shown_once():
    binary = np.tile([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]], (15, 1))
    assert list(distinct_views(binary, ONES)) == ["standard"]
    names = list(distinct_views(X, ONES))
    assert names[:3] == EVEN
    assert set(names) <= set(VIEWS)


def test_views_that_differ_by_less_than_a_number_count_as_one():
    near = np.linspace(-1.0, 1.0, 60)[:, None] ** 3
    A, B = (VIEWS[name](near, ONES)(near) for name in ("standard", "ranks"))
    most = np.abs(A - B).max()
    assert "ranks" in distinct_views(near, ONES, alike=0.5 * most)
    assert list(distinct_views(near, ONES, alike=1.01 * most)) == ["standard"]
    # Of many rows, some are compared, and views are made from all of them.
    step = distinct_views(X, ONES, step=4)["ranks"]
    np.testing.assert_array_equal(step(X), VIEWS["ranks"](X, ONES)(X))


def test_many_values_are_interpolated():
    column = rng.standard_normal((5000, 1))
    A = VIEWS["ranks"](column, np.ones(5000))(column)
    np.testing.assert_allclose(np.corrcoef(A[:, 0], column[:, 0])[0, 1], 1.0, atol=1e-3)


def test_a_stretched_view_is_the_view_times_the_root():
    view = VIEWS["standard"](X, ONES)
    root = np.arange(1.0, 5.0)
    np.testing.assert_array_equal(Stretched(view, root)(X), view(X) * root)
    np.testing.assert_allclose(Stretched(view, np.diag(root))(X), view(X) * root)
    assert Stretched(view, root).features.tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("shape", [(), (4,)])
def test_a_stretched_view_is_stretched_once_by_the_product(shape):
    view = VIEWS["standard"](X, ONES)
    first, second = rng.random((2, 4, *shape))
    twice = stretched(stretched(view, first), second)
    assert twice.view is view
    np.testing.assert_allclose(twice(X), stretch(stretch(view(X), first), second))


@pytest.mark.parametrize("shape", [(), (4,)])
def test_scores_keep_their_share_of_the_variance_under_a_metric(shape):
    view = scored(X, X[:, 0] ** 2 + X[:, 3], ONES)
    root = rng.random((4, *shape))
    A = stretch(view(X), view.extended(root))
    np.testing.assert_allclose(A[:, :4], stretch(view.view(X), root))
    size = np.sqrt(np.sum(root**2) / 4)
    assert A[:, 4].std() == pytest.approx(size * view(X)[:, 4].std())


def test_columns_of_one_unit_keep_their_ratios():
    rng = np.random.default_rng(0)
    X = np.round(16.0 * rng.beta(0.3, 0.3, (300, 6)))
    X[:, :2] *= [0.1, 0.5]
    A = VIEWS["one unit"](X, np.ones(300))(X)
    ratios = A.std(axis=0) / X.std(axis=0)
    np.testing.assert_allclose(ratios, ratios[0])
    np.testing.assert_allclose(np.mean(A**2), 1.0)


def test_columns_of_different_ranges_are_standardised():
    X = np.random.default_rng(0).standard_normal((300, 5)) * [1.0, 10.0, 100.0, 1e3, 1e4]
    views = [VIEWS[name](X, np.ones(300))(X) for name in ("one unit", "standard")]
    np.testing.assert_array_equal(*views)


@pytest.mark.parametrize("name", ["standard", "ranks"])
def test_the_values_of_an_indicator_may_differ_by_the_same_number_however_rare_they_are(name):
    rng = np.random.default_rng(0)
    rare = rng.random((300, 3)) < [0.02, 0.1, 0.5]
    X = np.column_stack([rng.standard_normal(300), 7.0 * rare])
    weight = rng.integers(1, 3, 300).astype(float)
    A, plain = (VIEWS[each](X, weight)(X) for each in (f"{name}, small indicators", name))
    np.testing.assert_allclose(np.ptp(A[:, 1:], axis=0), 2.0)
    np.testing.assert_allclose(weight @ A / weight.sum(), 0.0, atol=1e-12)
    np.testing.assert_array_equal(A[:, 0], plain[:, 0])
    assert np.ptp(plain[:, 1]) > 5.0


def scored(X, y, weight):
    view = VIEWS["standard"](X, weight)
    return WithScores.of(view, X, RidgeTargets(y[:, None], weight, np.logspace(-6, 1, 8)))


def test_scores_have_the_variance_of_the_other_columns_and_are_sums_of_effects():
    view = scored(X, np.abs(X[:, 0]) + X[:, 3], ONES)
    own, score = np.split(view(X), [4], axis=1)
    assert total_variance(score, ONES) == pytest.approx(total_variance(own, ONES))
    # The effect of one column does not depend on the others.
    moved = X.copy()
    moved[:, 0] = 0.3
    at_0 = view(X)[:, 4] - view(moved)[:, 4]
    other = X.copy()
    other[:, 1:] = X[::-1, 1:]
    moved[:, 1:] = X[::-1, 1:]
    np.testing.assert_allclose(view(other)[:, 4] - view(moved)[:, 4], at_0, atol=1e-9)


def test_scores_of_weights_are_those_of_repeats():
    weight = rng.integers(1, 4, 60).astype(float)
    y = X[:, 0] ** 2
    repeats = np.repeat(np.arange(60), weight.astype(int))
    expected = scored(X[repeats], y[repeats], np.ones(len(repeats)))
    np.testing.assert_allclose(scored(X, y, weight)(X), expected(X), atol=1e-8)


def test_there_are_no_scores_without_effects_or_of_too_many_columns():
    assert scored(X, np.ones(60), ONES) is None
    assert scored(np.ones((60, 2)), X[:, 0], ONES) is None
    corners = np.tile([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]], (15, 1))
    assert scored(corners, np.abs(corners[:, 0] - corners[:, 1]), ONES) is None
    wide = rng.standard_normal((20, 1100))
    assert scored(wide, wide[:, 0], np.ones(20)) is None


def test_slopes_of_scores_belong_to_the_features_that_have_the_effects():
    view = scored(X, np.abs(X[:, 0]), ONES)
    shares = squares_of_features(view, np.array([0.0, 0.0, 0.0, 0.0, 1.0]), 4)
    assert shares[0] > 0.8 * shares.sum()
    stretched = Stretched(VIEWS["standard"](X, ONES), np.array([2.0, 1.0, 1.0, 1.0]))
    np.testing.assert_allclose(squares_of_features(stretched, np.ones(4), 4), [4.0, 1.0, 1.0, 1.0])


def test_few_directions_replace_columns_only_if_they_show_the_rows():
    view = VIEWS["standard"]
    few = rng.standard_normal((60, 3)) @ rng.standard_normal((3, 20))
    plain, weight = view(few, ONES), rng.integers(1, 4, 60).astype(float)
    short = rotated(plain, plain(few), weight, 5, 0.9)
    assert short(few).shape == (60, 5)
    differences = [np.linalg.norm(A[:1] - A, axis=1) for A in (short(few), plain(few))]
    np.testing.assert_allclose(*differences, atol=1e-7)
    noise = rng.standard_normal((60, 20))
    plain = view(noise, ONES)
    assert rotated(plain, plain(noise), weight, 5, 0.9) is plain


def test_directions_of_more_columns_than_rows_are_found_too():
    few = rng.standard_normal((60, 3)) @ rng.standard_normal((3, 200))
    weight = rng.integers(1, 4, 60).astype(float)
    view = VIEWS["standard"](few, weight)
    short = rotated(view, view(few), weight, 3, 0.9)
    np.testing.assert_allclose(short.root.T @ short.root, np.eye(3), atol=1e-9)
    differences = [np.linalg.norm(A[:1] - A, axis=1) for A in (short(few), view(few))]
    np.testing.assert_allclose(*differences, atol=1e-7)


def test_few_rows_do_not_show_that_few_directions_are_enough():
    noise = rng.standard_normal((60, 200))
    view = VIEWS["standard"](noise, ONES)
    assert rotated(view, view(noise), ONES, 59, 0.9) is view
