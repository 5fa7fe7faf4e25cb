"""
XOR with two and five layers
============================

XOR is the smallest problem that is not linearly separable: the target is 1 if exactly one of two
inputs is 1. It is the paper's first experiment. Networks with the logit in every layer learn XOR in
one pass, for nearly every draw of the initial weights.
"""

# %%
# The data and the network
# ------------------------
# As in the paper, the corners are moved slightly. At the corners of the exact square, the columns
# of the matrices of the first layer are linearly dependent.

import matplotlib.pyplot as plt
import numpy as np

from karnet import KARRegressor

X = np.array([[0.0, 0.0], [0.9991, 0.9991], [0.9990, 0.0], [0.0, 0.9990]])
y = np.array([0.0, 0.0, 1.0, 1.0])


def network(sizes: tuple[int, ...], seed: int) -> KARRegressor:
    """Return a network with the logit in every layer, including the last."""
    return KARRegressor(sizes, output_activation="logit", random_state=seed)


# %%
# How often the fit succeeds
# --------------------------
# We fit networks with fifty draws of the initial weights. A fit succeeds if all four outputs are
# within 0.001 of their targets.

structures = {"two layers": (2,), "five layers": (3, 3, 3, 3)}
right = {}
for name, sizes in structures.items():
    outputs = [network(sizes, seed).fit(X, y).predict(X) for seed in range(50)]
    right[name] = sum(np.abs(output - y).max() < 1e-3 for output in outputs)
    print(f"{name}: {right[name]} of 50 fits succeed")

# %%
# Outputs between the corners
# ---------------------------
# Four points do not determine the output in the rest of the plane. The sharp lines are poles of the
# logit, where its argument crosses 0 or 1.

grid = np.meshgrid(np.linspace(-0.5, 1.5, 161), np.linspace(-0.5, 1.5, 161))
points = np.column_stack([axis.ravel() for axis in grid])
figure, places = plt.subplots(1, 2, figsize=(8.0, 3.6), layout="constrained")
for axes, (name, sizes) in zip(places, structures.items(), strict=True):
    values = network(sizes, 0).fit(X, y).predict(points).reshape(grid[0].shape)
    image = axes.pcolormesh(*grid, values, vmin=-1.0, vmax=2.0, cmap="coolwarm", rasterized=True)
    axes.scatter(*X.T, c=["white" if each == 0.0 else "black" for each in y], edgecolors="black")
    axes.set(title=name, aspect="equal", xlabel="$x_1$", ylabel="$x_2$")
figure.colorbar(image, ax=places, label="output (target: 1 at black dots, 0 at white dots)")
plt.show()
