"""Accumulators: however rows come and go, what is solved is what rows at once would give."""

from __future__ import annotations

import copy
import pickle
from functools import reduce

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from karnet import lstsq
from karnet._lstsq.statistics import Gram, Triangle
from karnet.accumulate import Accumulator

FORMS = ["auto", "gram", "triangle"]


def problem(seed, m, n, condition=10.0, q=2, offset=1.0):
    """Return A of the condition given, and B that it nearly explains."""
    rng = np.random.default_rng(seed)
    U, _ = np.linalg.qr(rng.standard_normal((m, n)))
    V, _ = np.linalg.qr(rng.standard_normal((n, n)))
    A = np.sqrt(m) * U * np.logspace(0, -np.log10(condition), n) @ V.T + offset
    return A, A @ rng.standard_normal((n, q)) + 0.1 * rng.standard_normal((m, q))


def merged(parts):
    return reduce(lambda first, second: first.merge(second), parts)


def distance(solution, reference):
    return np.linalg.norm(solution.coef - reference.coef) / np.linalg.norm(reference.coef)


def assert_same(accumulator, other, limit=1e-10):
    assert distance(accumulator.solve(), other.solve()) < limit


@settings(max_examples=40, deadline=None)
@given(
    cuts=st.lists(st.integers(0, 40), max_size=4),
    order=st.randoms(use_true_random=False),
    form=st.sampled_from(FORMS),
    bias=st.booleans(),
    alpha=st.sampled_from([0.0, 0.1]),
    wide=st.booleans(),
)
def test_any_split_in_any_order_is_all_rows_at_once(cuts, order, form, bias, alpha, wide):
    n = 60 if wide else 6
    A, B = problem(0, 60, n)
    A, B = A[:40], B[:40]
    if wide and form == "gram" and not alpha:
        form = "auto"  # products alone cannot tell what is rounding in a singular matrix
    empty = Accumulator(n, 2, bias=bias, alpha=alpha, form=form)
    parts = np.split(np.arange(40), sorted(cuts))
    order.shuffle(parts)
    found = merged([empty, *(empty.add(A[part], B[part]) for part in parts)]).solve()
    reference = lstsq(A, B, bias=bias, alpha=alpha)
    assert distance(found, reference) < 1e-9
    assert found.rank == reference.rank


@pytest.mark.parametrize("forms", [("auto",) * 3, ("gram", "triangle", "auto"), ("triangle",) * 3])
def test_merging_is_commutative_and_associative(forms):
    A, B = problem(1, 90, 8)
    a, b, c = (Accumulator(8, 2, form=form).add(A[k::3], B[k::3]) for k, form in enumerate(forms))
    assert_same(a.merge(b), b.merge(a))
    assert_same(a.merge(b).merge(c), a.merge(b.merge(c)))
    assert distance(a.merge(b).merge(c).solve(), lstsq(A, B, bias=True)) < 1e-10


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("alpha", [0.0, 0.1])
def test_what_is_added_and_removed_was_never_there(form, bias, alpha):
    A, B = problem(2, 120, 7)
    weight = np.random.default_rng(0).uniform(0.5, 2.0, 120)
    empty = Accumulator(7, 2, bias=bias, alpha=alpha, form=form)
    before = empty.add(A[:80], B[:80], weight[:80])
    after = before.add(A[80:], B[80:], weight[80:]).remove(A[80:], B[80:], weight[80:])
    assert_same(after, before)


@pytest.mark.parametrize(("form", "condition"), [("gram", 1e2), ("triangle", 1e4)])
def test_ten_thousand_adds_and_removes_lose_no_digits(form, condition):
    A, B = problem(3, 4000, 4, condition)
    A, B, high, window = np.tile(A, (4, 1)), np.tile(B, (4, 1)), 3, 60
    now = Accumulator(4, 2, form=form).add(A[:window], B[:window])
    for start in range(0, 5000 * high, high):
        old, new = slice(start, start + high), slice(start + window, start + window + high)
        now = now.add(A[new], B[new]).remove(A[old], B[old])
    left = slice(5000 * high, 5000 * high + window)
    assert distance(now.solve(), lstsq(A[left], B[left], bias=True, solver="qr")) < 1e-8


@pytest.mark.parametrize("form", FORMS)
def test_weights_are_repeats(form):
    A, B = problem(4, 50, 5)
    times = np.random.default_rng(0).integers(0, 4, 50)
    empty = Accumulator(5, 2, form=form)
    weighted = empty.add(A, B, times)
    repeated = empty.add(np.repeat(A, times, axis=0), np.repeat(B, times, axis=0))
    assert_same(weighted, repeated)
    # One of the copies of a row may be taken out alone.
    some = np.flatnonzero(times == 3)
    assert_same(weighted.remove(A[some], B[some]), empty.add(A, B, times - (times == 3)))


@pytest.mark.parametrize("condition", [1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6])
def test_eight_parts_merge_and_a_tenth_is_removed_up_to_a_condition_of_a_million(condition):
    A, B = problem(5, 800, 30, condition)
    empty = Accumulator(30, 2)
    union = merged(empty.add(A[part], B[part]) for part in np.array_split(np.arange(800), 8))
    assert isinstance(union.statistic, Gram if condition < 300 else Triangle)
    assert distance(union.solve(), lstsq(A, B, bias=True, solver="qr")) < 1e-9
    out = np.arange(0, 800, 10)
    A_rest, B_rest = np.delete(A, out, axis=0), np.delete(B, out, axis=0)
    rest = union.remove(A[out], B[out])
    assert distance(rest.solve(), lstsq(A_rest, B_rest, bias=True, solver="qr")) < 1e-9


def test_products_turn_into_a_triangle_before_a_heavy_part_swallows_their_digits():
    A, B = problem(6, 200, 10)
    heavy = 1e4 * A[:5], 1e4 * B[:5]
    light = Accumulator(10, 2).add(A, B)
    everything = np.vstack([A, heavy[0]]), np.vstack([B, heavy[1]])
    assert isinstance(light.statistic, Gram)
    for both in (light.add(*heavy), light.merge(Accumulator(10, 2, alpha=1.0).add(*heavy))):
        assert isinstance(both.statistic, Triangle)
        assert distance(both.solve(), lstsq(*everything, bias=True, solver="qr")) < 1e-10


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("alpha", [0.0, 1e-3])
def test_columns_that_depend_on_each_other_are_solved_by_least_norm(bias, alpha):
    A, B = problem(8, 150, 10)
    A = np.hstack([A, A[:, :3], np.full((150, 1), 7.3), np.zeros((150, 1))])
    empty = Accumulator(15, 2, bias=bias, alpha=alpha)
    both = empty.add(A[:80], B[:80]).merge(empty.add(A[80:], B[80:]))
    for found, rows in ((both, slice(None)), (both.remove(A[:20], B[:20]), slice(20, None))):
        reference = lstsq(A[rows], B[rows], bias=bias, alpha=alpha)
        assert distance(found.solve(), reference) < 1e-8
        assert found.solve().rank == reference.rank


@pytest.mark.parametrize("form", ["auto", "triangle"])
@pytest.mark.parametrize("alpha", [1e-3, 1.0])
def test_with_a_ridge_rows_are_removed_where_there_are_fewer_than_columns(form, alpha):
    rng = np.random.default_rng(9)
    A, B = rng.standard_normal((50, 100)), rng.standard_normal((50, 3))
    rest = Accumulator(100, 3, alpha=alpha, form=form).add(A, B).remove(A[:5], B[:5])
    assert distance(rest.solve(), lstsq(A[5:], B[5:], bias=True, alpha=alpha)) < 1e-8


@pytest.mark.parametrize("size", [1e-170, 1e170])
def test_no_unit_is_too_large_or_too_small(size):
    A, B = problem(10, 60, 4)
    rest = Accumulator(4, 2).add(size * A, B).remove(size * A[:9], B[:9]).solve()
    plain = lstsq(A[9:], B[9:], bias=True).coef
    rest.coef[1:] *= size
    np.testing.assert_allclose(rest.coef, plain, rtol=1e-9)


def test_small_variation_about_large_means_keeps_its_digits():
    A, B = problem(11, 300, 5, condition=1e3)
    rest = Accumulator(5, 2).add(A + 1e5, B).add(A[:50] + 1e5, B[:50])
    rest = rest.remove(A[100:150] + 1e5, B[100:150])
    rows = np.r_[0:100, 150:300, 0:50]
    assert distance(rest.solve(), lstsq(A[rows] + 1e5, B[rows], bias=True)) < 1e-8


def test_of_no_rows_and_of_no_columns():
    nothing = Accumulator(2, 1)
    assert nothing.solve().coef.tolist() == [[0.0]] * 3
    assert nothing.add(np.zeros((0, 2)), np.zeros(0)).statistic is None
    mean = Accumulator(0, 1).add(np.zeros((4, 0)), [1.0, 2.0, 3.0, 6.0])
    assert mean.solve().coef == pytest.approx(3.0)
    assert mean.remove(np.zeros((1, 0)), [6.0]).solve().coef == pytest.approx(2.0)


def test_another_ridge_may_be_asked_for():
    A, B = problem(12, 60, 4)
    for form in FORMS:
        found = Accumulator(4, 2, form=form).add(A, B).solve(alpha=2.0)
        assert distance(found, lstsq(A, B, bias=True, alpha=2.0)) < 1e-12


def test_it_is_copied_and_pickled():
    A, B = problem(13, 60, 4)
    accumulator = Accumulator(4, 2).add(A, B)
    for twin in (copy.deepcopy(accumulator), pickle.loads(pickle.dumps(accumulator))):
        np.testing.assert_array_equal(twin.solve().coef, accumulator.solve().coef)


def test_right_hand_sides_are_given_new_places():
    A, B = problem(14, 60, 4)
    wide = np.zeros((60, 3))
    wide[:, [2, 0]] = B
    for form in ("gram", "triangle"):
        spread = Accumulator(4, 2, form=form).add(A, B).spread(np.array([2, 0]), 3)
        assert_same(spread.add(A, wide), Accumulator(4, 3).add(A, wide), 1e-12)


A, B = problem(15, 300, 20)
OUTLIER = np.vstack([A, np.full((1, 20), 1e9)]), np.vstack([B, np.ones((1, 2))])
HOLD = "times the products of all rows, so not all of them were added"


@pytest.mark.parametrize("form", ["gram", "triangle"])
@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ((5.0 * A[::-10], B[:30]), HOLD),
        ((A, B), "their weight is 300, and that of all rows 300"),
        ((A, B, np.full(300, 2.0)), "their weight is 600, and that of all rows 300"),
        ((A[:10], B[:10], np.full(10, 20.0)), HOLD),
        ((A[:290], B[:290]), "of the products would remain"),
    ],
    ids=["never in it", "all", "more than all", "some too often", "too many"],
)
def test_what_cannot_be_removed_is_refused_with_the_numbers(form, rows, message):
    whole = Accumulator(20, 2, form=form).add(A, B)
    before = whole.solve().coef.copy()
    with pytest.raises(ValueError, match=message) as error:
        whole.remove(*rows)
    assert "\n" not in str(error.value)
    np.testing.assert_array_equal(whole.solve().coef, before)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("alpha", [0.0, 1.0])
def test_removing_an_outlier_does_not_restore_the_digits_it_cost(form, alpha):
    whole = Accumulator(20, 2, form=form, alpha=alpha).add(A, B)
    with pytest.raises(ValueError, match=r"these rows cannot be removed: .*(rounding|solved to)"):
        whole.add(OUTLIER[0][-1:], OUTLIER[1][-1:]).remove(OUTLIER[0][-1:], OUTLIER[1][-1:])


@pytest.mark.parametrize("form", ["gram", "triangle"])
@pytest.mark.parametrize("heavy", [1e0, 1e1, 1e2, 1e3, 1e4, 1e5])
def test_the_error_is_small_or_the_removal_refused(form, heavy):
    """Control columns measure the error of other right-hand sides to about a factor of ten."""
    for seed in range(5):
        A, B = problem(seed, 200, 10, condition=1e2)
        C, D = problem(seed + 50, 15, 10, condition=1e2)
        whole = Accumulator(10, 2, form=form).add(A, B).add(heavy * C, heavy * D)
        try:
            rest = whole.remove(heavy * C, heavy * D)
        except ValueError:
            assert heavy > 1e1
        else:
            assert heavy < 1e5
            assert distance(rest.solve(), lstsq(A, B, bias=True)) < 1e-7


def test_rows_where_no_row_was_are_not_removed():
    flat = np.hstack([A, A[:, :1]])
    whole = Accumulator(21, 2).add(flat, B)
    with pytest.raises(ValueError, match="is orthogonal to all rows, so they were never added"):
        whole.remove(flat[:5] + np.eye(21)[-1], B[:5])
    with pytest.raises(ValueError, match="these rows cannot be removed: there are none"):
        Accumulator(20, 2).remove(A[:1], B[:1])


def test_without_a_ridge_no_direction_may_be_left_empty():
    lonely = np.zeros((300, 1))
    lonely[:3] = 1.0
    whole = Accumulator(21, 2).add(np.hstack([A, lonely]), B)
    with pytest.raises(ValueError, match="rounding"):
        whole.remove(np.hstack([A, lonely])[:3], B[:3])


def test_products_that_cannot_be_solved_are_refused_with_their_condition():
    A, B = problem(16, 300, 20, condition=1e5)
    products = Accumulator(20, 2, form="gram").add(A, B)
    with pytest.raises(ValueError, match=r"a matrix of condition \d\.\de\+05 cannot be solved"):
        products.solve()
    with pytest.raises(ValueError, match="cannot be solved to 1e-08: keep a triangle"):
        products.merge(Accumulator(20, 2, form="triangle").add(A, B))
    with pytest.raises(ValueError, match="would remain"):
        Accumulator(20, 2, form="gram").add(A[:5], B[:5]).remove(A[:1], B[:1])
    assert products.solve(alpha=1.0).solver == "cholesky"
    with pytest.raises(ValueError, match=r"cannot be solved at rcond=1\.0e-01"):
        Accumulator(20, 2, form="gram", rcond=0.1).add(*problem(17, 300, 20)).solve()


def test_a_triangle_made_under_a_ridge_is_not_solved_without():
    rng = np.random.default_rng(18)
    A, B = rng.standard_normal((40, 60)), rng.standard_normal((40, 1))
    few = Accumulator(60, 1, alpha=1.0).add(A, B)
    assert isinstance(few.statistic, Gram)
    many = few.add(1e4 * A, 1e4 * B)
    assert isinstance(many.statistic, Triangle)
    both = np.vstack([A, 1e4 * A]), np.vstack([B, 1e4 * B])
    assert distance(many.solve(), lstsq(*both, bias=True, alpha=1.0)) < 1e-8
    with pytest.raises(ValueError, match=r"accurate for a ridge of 1 or more, not for 0\.1"):
        many.solve(alpha=0.1)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Accumulator(-1, 1), "n=-1 must be an integer that is not negative"),
        (lambda: Accumulator(1, 1.0), "q=1.0 must be an integer"),
        (lambda: Accumulator(1, 1, bias="no"), "bias='no' must be True or False"),
        (lambda: Accumulator(1, 1, alpha=-1.0), "alpha=-1.0 must be finite and not negative"),
        (lambda: Accumulator(1, 1, rcond=2.0), "rcond=2.0 must be below 1"),
        (lambda: Accumulator(1, 1, form="lu"), "form='lu' is not known: give one of auto, gram"),
        (
            lambda: Accumulator(1, 1).add([[1.0]], [1.0, 2.0]),
            "number of rows, but their shapes",
        ),
        (lambda: Accumulator(2, 1).add([[1.0]], [1.0]), "A and B must have 2 and 1 columns"),
        (lambda: Accumulator(1, 1).add([[np.nan]], [1.0]), "A must be finite"),
        (lambda: Accumulator(1, 1).add([[1.0]], [1.0], [-1.0]), "for each of the 1 rows"),
        (lambda: Accumulator(1, 1).merge(Accumulator(2, 1)), "n, q and bias are"),
    ],
)
def test_what_is_wrong_is_said_in_one_sentence(make, message):
    with pytest.raises(ValueError, match=message) as error:
        make()
    assert "\n" not in str(error.value)


def test_only_accumulators_merge():
    with pytest.raises(TypeError, match="an Accumulator merges with another one"):
        Accumulator(1, 1).merge(3)


def test_a_problem_without_columns_and_bias_is_solved():
    empty = Accumulator(0, 1, bias=False, alpha=1.0).add(np.ones((3, 0)), np.ones(3))
    assert empty.merge(empty).solve().coef.shape == (0, 1)


def test_rows_too_large_to_be_summed_are_refused():
    with pytest.raises(ValueError, match=r"too large to be summed|overflows"):
        Accumulator(2, 1, alpha=1.0).add(np.full((1, 2), 1e308), [1.0]).solve()
