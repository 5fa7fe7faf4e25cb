"""Rows in blocks, and the statistics that merge over them."""

from __future__ import annotations

import threading
import time

import numpy as np
import pytest
from scipy import sparse
from threadpoolctl import threadpool_info, threadpool_limits

from karnet._lstsq.statistics import Gram, Stack, Sum, Triangle
from karnet._rows.memory import Rows, block_slices, dense, in_order


@pytest.mark.parametrize(("n_rows", "width"), [(0, 3), (1, 1), (256, 10**9), (1000, 10**9)])
def test_slices_cover_every_row_once(n_rows, width):
    covered = [i for rows in block_slices(n_rows, width) for i in range(n_rows)[rows]]
    assert covered == list(range(n_rows))


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("fine", [False, True])
def test_a_table_of_many_blocks_is_mapped_block_by_block(threads, fine, block_sizes):
    block_sizes(block=1, chunk=1)
    X = np.arange(2000.0).reshape(1000, 2)
    rows = Rows(X, np.arange(1000), np.ones(1000)).map(lambda block: 2 * block, 2)
    assert rows.X is X
    with threadpool_limits(threads):
        stack = rows.reduce(lambda a, y, w: Stack((np.column_stack([a, y, w]),), (y,)), fine)
    expected = np.column_stack([2 * X, np.arange(1000), np.ones(1000)])
    np.testing.assert_array_equal(stack.A, expected)
    sizes = []
    rows.reduce(lambda a, y, w: sizes.append(len(a)) or Sum(a.sum(axis=0)), fine)
    assert max(sizes) == (32 if fine else 256)


def test_blocks_run_side_by_side_on_as_many_threads_as_blas_may_use():
    def thread_and_limit(_):
        barrier.wait(timeout=10)
        limits = [each["num_threads"] for each in threadpool_info() if each["user_api"] == "blas"]
        return threading.get_ident(), max(limits)

    barrier = threading.Barrier(2)
    with threadpool_limits(2):
        found = list(in_order(thread_and_limit, [0, 1, 2, 3]))
    assert len({thread for thread, _ in found}) == 2
    assert {limit for _, limit in found} == {1}
    with threadpool_limits(1):
        assert list(in_order(lambda _: threading.get_ident(), [0, 1])) == 2 * [
            threading.get_ident()
        ]


def test_what_threads_compute_comes_in_order_and_with_its_errors():
    def slow_at_first(k):
        time.sleep(0.02 if k < 2 else 0.0)
        return np.geterr()["divide"], 1 // (5 - k)

    with threadpool_limits(2), np.errstate(divide="ignore"):
        results = in_order(slow_at_first, list(range(6)))
        assert [next(results) for _ in range(5)] == [("ignore", 1 // (5 - k)) for k in range(5)]
        with pytest.raises(ZeroDivisionError):
            next(results)


def test_only_what_was_made_for_it_may_be_overwritten():
    X, y = np.ones((4, 2)), np.ones(4)
    writeable = []

    def note(a, y, w):
        writeable.append((a.flags.writeable, y.flags.writeable))
        return Sum(a)

    Rows(X, y).reduce(note)
    Rows(X, y, change=lambda block: 2 * block).reduce(note)
    Rows(X, y).map(lambda block: 2 * block, 2).reduce(note)
    assert writeable == [(False, False), (True, False), (False, False)]
    assert X.flags.writeable


def test_a_table_of_one_block_is_mapped_at_once():
    calls = []
    rows = Rows(np.ones((5, 2)), np.arange(5)).map(lambda block: calls.append(1) or block, 2)
    for _ in range(3):
        rows.reduce(lambda a, y, w: Sum(a))
    assert len(calls) == 1


def test_dense_blocks_do_not_depend_on_how_the_table_lies():
    X = np.random.default_rng(0).standard_normal((6, 3)).astype(np.float32)
    for each in (X, np.asfortranarray(X), sparse.csr_array(X), X[::-1][::-1]):
        block = dense(each)
        assert block.flags.c_contiguous
        assert block.dtype == np.float64
        np.testing.assert_array_equal(block, X.astype(np.float64))


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_statistics_of_parts_merge_to_those_of_the_whole(bias, weighted):
    rng = np.random.default_rng(0)
    A, B = rng.standard_normal((90, 4)) + 5, rng.standard_normal((90, 2))
    A.flags.writeable = B.flags.writeable = False  # else they may be overwritten
    weight = rng.uniform(0.1, 3.0, 90) if weighted else None
    parts = [slice(0, 7), slice(7, 50), slice(50, 90)]

    def merged(statistic):
        first, *others = (
            statistic.of(A[p], B[p], None if weight is None else weight[p], bias) for p in parts
        )
        for other in others:
            first = first.merge(other)
        return first

    gram, whole = merged(Gram), Gram.of(A, B, weight, bias)
    np.testing.assert_allclose(gram.AA, whole.AA, rtol=1e-12)
    np.testing.assert_allclose(gram.AB, whole.AB, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(gram.centre.A, whole.centre.A, rtol=1e-14)
    triangle = merged(Triangle)
    np.testing.assert_allclose(triangle.R.T @ triangle.R, gram.AA, rtol=1e-11)
    np.testing.assert_allclose(triangle.R.T @ triangle.Z, gram.AB, rtol=1e-10, atol=1e-11)
    stack = merged(Stack)
    assert stack.A.shape[1] + stack.B.shape[1] == 6 + bias
    np.testing.assert_array_equal(stack.A, Stack.of(A, B, weight, bias).A)
    np.testing.assert_array_equal(stack.B, Stack.of(A, B, weight, bias).B)


def test_centred_products_keep_their_digits_beside_a_large_offset():
    rng = np.random.default_rng(1)
    A = rng.standard_normal((1000, 3))
    B = np.zeros((1000, 1))
    far = [Gram.of(part + 1e6, B[:250], None, True) for part in np.split(A, 4)]
    gram = far[0].merge(far[1]).merge(far[2].merge(far[3]))
    centred = A - A.mean(axis=0)
    np.testing.assert_allclose(gram.AA, centred.T @ centred, rtol=1e-7, atol=1e-6)
