"""
The method in pictures
======================

How can you train a neural network without gradient descent? This example trains one by hand, in a
dozen lines of NumPy, and plots every matrix on the way. You only need to know what a least-squares
fit is.
"""

# %%
# A network is a chain of layers
# ------------------------------
# The input is a table with one row for each sample, for example a flower. A layer multiplies the
# table by weights, adds a bias, and applies a function :math:`f` to every number. The next layer
# does the same with the result. With a column of ones, so that the bias is a weight like any other,
# a network with two layers is:
#
# .. math::
#
#    A_1 &= [1, X] \\
#    A_2 &= [1, f(A_1 W_1)] \\
#    G &= f(A_2 W_2)
#
# Prediction goes from left to right. Training first goes from right to left: it computes the output
# that each layer *should* give.

import matplotlib.pyplot as plt
import numpy as np
from scipy.special import expit
from sklearn.datasets import load_iris
from sklearn.preprocessing import minmax_scale

from karnet import KARClassifier, lstsq

# sphinx_gallery_start_ignore
BLUE, ORANGE = "#2a7fc4", "#d9640f"


def chain(names: dict[int, str], y: float, step: int, colour: str) -> None:
    """Draw boxes in a row, and arrows between them in the direction of the step."""
    box = {"boxstyle": "round,pad=0.45", "facecolor": "white", "edgecolor": colour}
    arrow = {"arrowstyle": "->", "color": colour, "shrinkA": 34, "shrinkB": 34, "linewidth": 1.5}
    for x, name in names.items():
        plt.text(x, y, name, ha="center", va="center", fontsize=13, bbox=box)
        if x + step in names:
            plt.annotate("", (x + step, y), (x, y), arrowprops=arrow)


plt.figure(figsize=(8.0, 2.4), layout="constrained")
chain({0: "$X$", 1: "$A_1W_1$", 2: "$f(A_1W_1)$", 3: "$A_2W_2$", 4: "$G$"}, 1.0, 1, BLUE)
chain({1: "$B_1$", 2: "$f(B_1)$", 3: "$B_2$", 4: "$Y$"}, 0.0, -1, ORANGE)
plt.text(-0.3, 1.5, "prediction", color=BLUE, fontsize=12)
plt.text(-0.3, -0.05, "pull-back", color=ORANGE, fontsize=12)
plt.xlim(-0.4, 4.4)
plt.ylim(-0.5, 1.8)
plt.axis("off")
plt.show()
# sphinx_gallery_end_ignore

# %%
# An invertible activation
# ------------------------
# Going back requires an :math:`f` with an inverse :math:`\varphi`. The paper uses the logit, whose
# inverse is the sigmoid. The logit is defined only between 0 and 1, and the values of a layer lie
# only approximately in that interval. It is therefore continued as :math:`\log |x / (1 - x)|`,
# which is the same inside the interval and defined almost everywhere outside.


def logit(x: np.ndarray) -> np.ndarray:
    """Return the logit on (0, 1), and its continuation outside."""
    return np.log(np.abs(x / (1.0 - x)))


# sphinx_gallery_start_ignore
figure, (left, right) = plt.subplots(1, 2, figsize=(8.0, 3.0), layout="constrained")
inside, z = np.linspace(0.001, 0.999, 400), np.linspace(-6.0, 6.0, 400)
left.plot(inside, logit(inside), color=BLUE, label="on (0, 1)")
for x in (np.linspace(-1.0, -0.001, 200), np.linspace(1.001, 2.0, 200)):
    left.plot(x, logit(x), color=BLUE, linestyle=":", label="continued" if x[0] < 0 else None)
left.set(title="forward: f, the logit", ylim=(-6.0, 6.0), xlabel="x")
left.legend(frameon=False)
right.plot(z, expit(z), color=ORANGE)
right.set(title=r"back: $\varphi$, the sigmoid", xlabel="z")
plt.show()
# sphinx_gallery_end_ignore

# %%
# Pull the target back
# --------------------
# Iris has 150 flowers of three species, with four measurements each. The target Y is 1 for the
# species of a flower and 0 for the others. Draw the weights :math:`W_2` of the upper layer at
# random: a bias :math:`w_2` and the other weights :math:`V_2`. Which input would make the upper
# layer predict Y? Invert the activation, subtract the bias, and invert the multiplication:
#
# .. math::
#
#    B_2 &= \varphi(Y) \\
#    B_1 &= \varphi\left((B_2 - 1 w_2) V_2^+\right)
#
# :math:`V^+` is the pseudoinverse, which generalises the inverse to matrices of any shape.
# :math:`B_1` is the target of the lower layer.

X, y = load_iris(return_X_y=True)
X, Y = minmax_scale(X), np.eye(3)[y]
W2 = np.random.default_rng(0).standard_normal((11, 3))
B2 = expit(Y)
B1 = expit((B2 - W2[0]) @ np.linalg.pinv(W2[1:]))


# sphinx_gallery_start_ignore
def show(matrices: dict[str, np.ndarray]) -> None:
    """Draw matrices as images side by side, with widths proportional to their columns."""
    widths = [max(matrix.shape[1], 3) for matrix in matrices.values()]
    _, axes = plt.subplots(
        1, len(matrices), figsize=(8.0, 3.2), layout="constrained", width_ratios=widths
    )
    for place, (name, matrix) in zip(axes, matrices.items(), strict=True):
        place.imshow(matrix, aspect="auto", interpolation="nearest", cmap="viridis")
        place.set_title(name, fontsize=11)
        place.set_xticks([])
        place.set_yticks([24, 74, 124], ["setosa", "versicolor", "virginica"])
        if place is not axes[0]:
            place.set_yticks([])
    plt.show()


show({"Y": Y, "$B_2$, upper target": B2, "$B_1$, lower target": B1})
# sphinx_gallery_end_ignore

# %%
# All flowers of one species have the same target, in both layers. There are 150 rows but only three
# distinct ones, which will matter below.
#
# Solve forward
# -------------
# Now every layer has an input and a target, so each layer is a least-squares problem with a direct
# solution. First solve the lower layer from the inputs. Then solve the upper layer from the actual
# output of the lower layer; the solution replaces the random weights.

W1 = lstsq(X, B1, bias=True).coef
H = logit(W1[0] + X @ W1[1:])
upper = lstsq(H, B2, bias=True, rcond=1e-9)
G = logit(upper.coef[0] + H @ upper.coef[1:])
# sphinx_gallery_start_ignore
show({"X": X, "$A_1W_1$, near $B_1$": W1[0] + X @ W1[1:], "G, near Y": G.clip(0, 1)})
# sphinx_gallery_end_ignore
print(f"{np.mean(G.argmax(axis=1) == y):.1%} of the flowers are classified correctly")

# %%
# This completes the training. There was no gradient, no step size and no epoch, and nothing was
# repeated. The estimator computes the same network from the same random weights:

net = KARClassifier((10,), init=[W2]).fit(X, y)
difference = np.abs(net.decision_function(X) - G).max()
print(f"largest difference from KARClassifier: {difference:.0e}")

# %%
# The minimum-norm solution
# -------------------------
# A least-squares problem may have many solutions: two weights whose sum should be 1 can be any
# point on a line. karnet returns the solution with the smallest norm. It is unique, it does not
# depend on a starting point, and weights that do not affect the fit are zero. This is the solution
# of the pseudoinverse, but the pseudoinverse is never computed: the solver chooses the fastest
# reliable method for the shape and rank of the problem.

solution = lstsq(np.array([[1.0, 1.0]]), np.array([1.0]))
print(f"weights {solution.coef}, rank {solution.rank}, by {solution.solver}")
# sphinx_gallery_start_ignore
figure, axes = plt.subplots(figsize=(6.4, 3.4), layout="constrained")
line = np.linspace(-0.4, 1.4, 2)
axes.plot(line, 1.0 - line, color=BLUE, label="all solutions of\n$w_1 + w_2 = 1$")
axes.plot(*solution.coef, "o", color=ORANGE, label="minimum norm")
axes.add_patch(plt.Circle((0, 0), np.sqrt(0.5), fill=False, linestyle=":", color=ORANGE))
axes.plot([0, solution.coef[0]], [0, solution.coef[1]], color=ORANGE, linewidth=1.0)
axes.set(xlabel="$w_1$", ylabel="$w_2$", aspect="equal", ylim=(-0.85, 1.5))
figure.legend(*axes.get_legend_handles_labels(), frameon=False, loc="outside right")
plt.show()
# sphinx_gallery_end_ignore

# %%
# The rank of a pulled-back layer
# -------------------------------
# The target has three distinct rows, so the lower layer computes only three weighted sums of the
# measurements, however many units it has. The activation :math:`f` adds further directions, but
# each one is much weaker than the one before. The singular values measure the strength of each
# direction. Those of a pulled-back layer decay quickly; those of a layer with random weights do
# not.

drawn = KARClassifier((100,), hidden="random", random_state=0).fit(X, y)
pulled = KARClassifier((100,), random_state=0).fit(X, y)
# sphinx_gallery_start_ignore
figure, axes = plt.subplots(figsize=(7.0, 3.4), layout="constrained")
for name, colour, wide in (("pulled back", ORANGE, pulled), ("random", BLUE, drawn)):
    hidden = logit(wide.intercepts_[0] + X @ wide.coefs_[0])
    hidden -= hidden.mean(axis=0)
    values = np.linalg.svd(hidden / np.linalg.norm(hidden, axis=0), compute_uv=False)
    axes.semilogy(values / values[0], ".", color=colour, label=name)
    print(f"{name}: rank {wide.layers_[-1].rank} of 101 columns")
axes.axhline(1e-9, color="grey", linewidth=1.0, linestyle="--")
axes.text(99, 2e-9, "values below count as zero", ha="right", fontsize=9, color="grey")
axes.set(xlabel="direction", ylabel="singular value", title="hidden layer of 100 units, Iris")
axes.legend(frameon=False)
plt.show()
# sphinx_gallery_end_ignore

# %%
# The paper's network is therefore fast but nearly linear. If no weighted sum of the inputs is
# informative, the network cannot succeed, as :doc:`two moons <moons>` show. Random layers and the
# CV estimators do better on such problems. :doc:`The method and its limits </method>` explains the
# choices that the paper leaves open, and the limits of the method.
