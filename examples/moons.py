"""
Two moons: beyond linear scores
===============================

The paper's network with two classes depends on its inputs only through linear scores. No straight
line separates two interleaved moons, and neither does this network. Networks with other hidden
layers separate them, and still have a closed-form solution.
"""

# %%
# Four networks
# -------------
# We compare the paper's network, a network with random hidden units, a network whose random units
# are drawn again for the directions that matter (``hidden="metric"``), and
# :class:`~karnet.KARClassifierCV`, which selects all hyper-parameters.

import matplotlib.pyplot as plt
from sklearn.datasets import make_moons
from sklearn.inspection import DecisionBoundaryDisplay
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from karnet import KARClassifier, KARClassifierCV

X, y = make_moons(400, noise=0.2, random_state=0)
X_new, y_new = make_moons(10_000, noise=0.2, random_state=1)

options = {"activation": "tanh", "random_state": 0}
networks = {
    "pull-back": KARClassifier((100,), random_state=0),
    "random": KARClassifier((100,), hidden="random", alpha=1e-3, **options),
    "metric": KARClassifier((100,), hidden="metric", alpha=1e-3, **options),
    "KARClassifierCV": KARClassifierCV(random_state=0),
}
scores = {}
for name, net in networks.items():
    networks[name] = make_pipeline(StandardScaler(), net).fit(X, y)
    scores[name] = networks[name].score(X_new, y_new)
    print(f"{name:16s} test accuracy {scores[name]:.1%}")

# %%
# Decision boundaries
# -------------------

figure, places = plt.subplots(2, 2, figsize=(8.0, 6.0), layout="constrained")
for axes, (name, net) in zip(places.flat, networks.items(), strict=True):
    DecisionBoundaryDisplay.from_estimator(
        net, X, response_method="predict", cmap="coolwarm", alpha=0.3, ax=axes
    )
    axes.scatter(*X.T, c=y, s=6, cmap="coolwarm")
    axes.set(title=f"{name}: {scores[name]:.1%}", xticks=[], yticks=[])
plt.show()

# %%
# The estimated accuracy
# ----------------------
# `best_score_` is computed from left-out predictions, so it is a reliable estimate of the accuracy
# on new data.

selected = networks["KARClassifierCV"][-1]
print(f"estimated {selected.best_score_:.1%}, on the test set {scores['KARClassifierCV']:.1%}")
