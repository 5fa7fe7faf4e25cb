"""
How wide, for an exact fit?
===========================

A theorem of the paper: random hidden units, as many as there are distinct rows, fit any target
exactly. On ninety different flowers the error drops to nothing at the ninetieth weight of an
output. An exact fit is not a good one, though.
"""

# %%
# Ninety flowers to learn, the others to test
# -------------------------------------------
# Iris holds a few flowers twice, and two equal rows are one row less, so the ninety are drawn from
# those that differ.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_iris
from sklearn.preprocessing import minmax_scale

from karnet import KARClassifier

X, y = load_iris(return_X_y=True)
X = minmax_scale(X)
_, distinct = np.unique(X, axis=0, return_index=True)
train = np.random.default_rng(0).permutation(distinct)[:90]
test = np.setdiff1d(np.arange(len(X)), train)
target = np.eye(3)[y[train]]

# %%
# Wider and wider
# ---------------
# Without an output bias each output has one weight per hidden unit, with it one more.

widths = [1, 2, 5, 10, 20, 40, 60, 80, 87, 88, 89, 90, 91, 95, 110, 150]
errors, told_wrong = {}, {}
for name, bias in (("with output bias", True), ("without", False)):
    errors[name], told_wrong[name] = [], []
    for width in widths:
        net = KARClassifier((width,), hidden="random", fit_intercept=bias, random_state=0)
        net.fit(X[train], y[train])
        errors[name].append(np.sum((net.decision_function(X[train]) - target) ** 2))
        told_wrong[name].append(1.0 - net.score(X[test], y[test]))
    exact = next(w for w, error in zip(widths, errors[name], strict=True) if error < 1e-12)
    print(f"{name}: exact from {exact} hidden units on")

# %%
# The step, and what it costs
# ---------------------------
# On the right are the flowers that were not learned: the best width is far below the one that fits
# exactly. Choose the width by rows held out, not by the error on those learned.

figure, (left, right) = plt.subplots(1, 2, figsize=(8.0, 3.4), layout="constrained")
for name, style in (("with output bias", "o-"), ("without", "s--")):
    left.semilogy(widths, errors[name], style, markersize=4, label=name)
    right.plot(widths, told_wrong[name], style, markersize=4, label=name)
left.set(title="rows learned: squared error", xlabel="hidden units")
right.set(title="other rows: share told wrong", xlabel="hidden units", ylim=(0.0, None))
left.legend(frameon=False)
plt.show()
