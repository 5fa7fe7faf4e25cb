"""
Fitting data larger than memory
===============================

A layer is fitted from sums over rows, so the rows can be read one block at a time: from files, from
a database or, as in this example, from a function. The network is the same as from all rows at
once, bit for bit.
"""

# %%
# A function that generates blocks
# --------------------------------
# karnet calls the function once for every pass over the data, and the function must yield the same
# rows each time. :class:`karnet.blocks.Blocks` reads blocks from files.

import matplotlib.pyplot as plt
import numpy as np

from karnet import KARRegressor

DAYS, ROWS = 40, 1000
blocks_read = []


def days():
    """Yield the measurements day by day."""
    blocks_read.append(0)
    for day in range(DAYS):
        blocks_read[-1] += 1
        rng = np.random.default_rng(day)
        X = rng.random((ROWS, 3))
        signal = np.sin(6.0 * X[:, 0]) + X[:, 1] * X[:, 2]
        yield X, signal + 0.1 * rng.standard_normal(ROWS)


def network() -> KARRegressor:
    """Return the network, to be fitted in blocks or at once."""
    return KARRegressor((100,), activation="tanh", hidden="random", alpha=1e-3, random_state=0)


net = network().fit_blocks(days)
print(f"{DAYS * ROWS} rows; blocks read in each pass: {blocks_read}")

# %%
# The same network, bit for bit
# -----------------------------

X, y = (np.concatenate(parts) for parts in zip(*days(), strict=True))
at_once = network().fit(X, y)
same = np.array_equal(net.coefs_[-1], at_once.coefs_[-1])
print(f"R^2 {net.score(X, y):.4f}; same weights as from all rows at once: {same}")

# %%
# The fitted function
# -------------------
# The figure shows the prediction as a function of the first input, with the others held at one
# half.

line = np.linspace(0.0, 1.0, 200)
rows = np.column_stack([line, np.full((200, 2), 0.5)])
figure, axes = plt.subplots(figsize=(6.0, 3.4), layout="constrained")
near = np.abs(X[:, 1:] - 0.5).max(axis=1) < 0.05
axes.plot(X[near, 0], y[near], ".", color="grey", markersize=4, label="rows nearby")
axes.plot(line, np.sin(6.0 * line) + 0.25, color="#2a7fc4", label="true function")
axes.plot(line, net.predict(rows), "--", color="#d9640f", label="prediction")
axes.set(xlabel="first input", ylabel="target")
axes.legend(frameon=False)
plt.show()
