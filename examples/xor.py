"""
XOR, in two layers and in five
==============================

The smallest problem that no single line solves: answer 1 if exactly one of two inputs is 1. It is
the paper's first experiment. Networks with logit in every layer learn it in one pass, for nearly
every draw of the initial weights.
"""

# %%
# The data and the network
# ------------------------
# The corners are moved a little, as in the paper: at those of the exact square the columns of the
# first layer's matrices depend on each other.

import matplotlib.pyplot as plt
import numpy as np

from karnet import KARRegressor

X = np.array([[0.0, 0.0], [0.9991, 0.9991], [0.9990, 0.0], [0.0, 0.9990]])
y = np.array([0.0, 0.0, 1.0, 1.0])


def network(sizes: tuple[int, ...], seed: int) -> KARRegressor:
    """Return a network of logit layers, the last one too."""
    return KARRegressor(sizes, output_activation="logit", random_state=seed)


# %%
# How often it is right
# ---------------------
# Fifty draws of the initial weights. Right means that all four outputs are within 0.001.

structures = {"two layers": (2,), "five layers": (3, 3, 3, 3)}
right = {}
for name, sizes in structures.items():
    outputs = [network(sizes, seed).fit(X, y).predict(X) for seed in range(50)]
    right[name] = sum(np.abs(output - y).max() < 1e-3 for output in outputs)
    print(f"{name}: {right[name]} of 50 right")

# %%
# What it looks like between the corners
# --------------------------------------
# Four points say nothing about the rest of the plane. The logit has poles, where the number that
# comes in passes 0 or 1: they are the sharp lines.

grid = np.meshgrid(np.linspace(-0.5, 1.5, 161), np.linspace(-0.5, 1.5, 161))
points = np.column_stack([axis.ravel() for axis in grid])
figure, places = plt.subplots(1, 2, figsize=(8.0, 3.6), layout="constrained")
for axes, (name, sizes) in zip(places, structures.items(), strict=True):
    values = network(sizes, 0).fit(X, y).predict(points).reshape(grid[0].shape)
    shown = axes.pcolormesh(*grid, values, vmin=-1.0, vmax=2.0, cmap="coolwarm", rasterized=True)
    axes.scatter(*X.T, c=["white" if each == 0.0 else "black" for each in y], edgecolors="black")
    axes.set(title=name, aspect="equal", xlabel="$x_1$", ylabel="$x_2$")
figure.colorbar(shown, ax=places, label="output; black dots should be 1, white ones 0")
plt.show()
