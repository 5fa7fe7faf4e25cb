"""Iris, inputs in [0, 1], and how networks learned from it are compared."""

from __future__ import annotations

import numpy as np
from sklearn.datasets import load_iris
from sklearn.preprocessing import MinMaxScaler

IRIS_X, IRIS_Y = load_iris(return_X_y=True)
IRIS_X = MinMaxScaler().fit_transform(IRIS_X)


def assert_same_network(ours, theirs, atol=1e-8):
    for a, b in zip(ours.coefs_, theirs.coefs_, strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=atol * max(1, np.abs(b).max()))
    for a, b in zip(ours.intercepts_, theirs.intercepts_, strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=atol * max(1, np.abs(b).max()))
