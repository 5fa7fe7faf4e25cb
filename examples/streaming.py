"""
Rows that never are in memory together
======================================

Learning a layer is a sum over rows, so rows may come a block at a time: from files, from a database
or, as here, from a function. The network is the one that all rows at once would have given, to the
last bit.
"""

# %%
# A function that gives blocks
# ----------------------------
# It is called anew for every pass that learning makes, and must give the same rows each time. Files
# have functions of their own: :class:`karnet.blocks.Blocks`.

import matplotlib.pyplot as plt
import numpy as np

from karnet import KARRegressor

DAYS, ROWS = 40, 1000
asked = []


def days():
    """Yield the measurements of one day after the other."""
    asked.append(0)
    for day in range(DAYS):
        asked[-1] += 1
        rng = np.random.default_rng(day)
        X = rng.random((ROWS, 3))
        signal = np.sin(6.0 * X[:, 0]) + X[:, 1] * X[:, 2]
        yield X, signal + 0.1 * rng.standard_normal(ROWS)


def network() -> KARRegressor:
    """Return the network that is learned, by blocks or at once."""
    return KARRegressor((100,), activation="tanh", hidden="random", alpha=1e-3, random_state=0)


net = network().fit_blocks(days)
print(f"{DAYS * ROWS} rows; blocks read in each pass: {asked}")

# %%
# The same network, bit for bit
# -----------------------------

X, y = (np.concatenate(parts) for parts in zip(*days(), strict=True))
at_once = network().fit(X, y)
same = np.array_equal(net.coefs_[-1], at_once.coefs_[-1])
print(f"R^2 {net.score(X, y):.4f}; the same weights as from all rows at once: {same}")

# %%
# What it has learned
# -------------------
# The first input alone, the others held at one half.

line = np.linspace(0.0, 1.0, 200)
rows = np.column_stack([line, np.full((200, 2), 0.5)])
figure, axes = plt.subplots(figsize=(6.0, 3.4), layout="constrained")
near = np.abs(X[:, 1:] - 0.5).max(axis=1) < 0.05
axes.plot(X[near, 0], y[near], ".", color="grey", markersize=4, label="rows nearby")
axes.plot(line, np.sin(6.0 * line) + 0.25, color="#2a7fc4", label="the truth")
axes.plot(line, net.predict(rows), "--", color="#d9640f", label="the network")
axes.set(xlabel="first input", ylabel="answer")
axes.legend(frameon=False)
plt.show()
