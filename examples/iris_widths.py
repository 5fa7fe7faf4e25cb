"""
How wide must a network be for an exact fit?
============================================

A theorem of the paper says that a network with as many random hidden units as distinct rows fits
any target exactly. For ninety distinct flowers, the training error drops to zero when each output
has ninety weights. The example also shows that an exact fit does not generalise well.
"""

# %%
# Ninety training rows
# --------------------
# Iris contains a few duplicate rows, which would reduce the number of distinct rows. The ninety
# training rows are therefore drawn from the distinct ones. The other rows are the test set.

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
# Increase the width
# ------------------
# Without an output bias, each output has one weight per hidden unit. With a bias it has one more.

widths = [1, 2, 5, 10, 20, 40, 60, 80, 87, 88, 89, 90, 91, 95, 110, 150]
errors, test_errors = {}, {}
for name, bias in (("with output bias", True), ("without", False)):
    errors[name], test_errors[name] = [], []
    for width in widths:
        net = KARClassifier((width,), hidden="random", fit_intercept=bias, random_state=0)
        net.fit(X[train], y[train])
        errors[name].append(np.sum((net.decision_function(X[train]) - target) ** 2))
        test_errors[name].append(1.0 - net.score(X[test], y[test]))
    exact = next(w for w, error in zip(widths, errors[name], strict=True) if error < 1e-12)
    print(f"{name}: exact from {exact} hidden units on")

# %%
# Training and test error
# -----------------------
# The right panel shows the test error. The best width is far below the width of an exact fit, so
# choose the width on held-out rows, not by the training error.

figure, (left, right) = plt.subplots(1, 2, figsize=(8.0, 3.4), layout="constrained")
for name, style in (("with output bias", "o-"), ("without", "s--")):
    left.semilogy(widths, errors[name], style, markersize=4, label=name)
    right.plot(widths, test_errors[name], style, markersize=4, label=name)
left.set(title="training set: squared error", xlabel="hidden units")
right.set(title="test set: share misclassified", xlabel="hidden units", ylim=(0.0, None))
left.legend(frameon=False)
plt.show()
