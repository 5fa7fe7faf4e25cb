"""
Five sites, one model
=====================

Five hospitals collect the same measurements but may not share the data of their patients. Each
hospital fits a network with the same hidden layers to its own rows. The hospitals exchange
statistics instead of rows, and obtain the network of the pooled rows up to rounding.

This works because random hidden layers do not depend on the data, and because the output layer
depends on the rows only through the products A'A and A'B of its inputs A and its targets B. These
products are sums over rows, so they can be added up.
"""

# %%
# The data
# --------
# We split a data set into five parts of very different size. All sites must scale their inputs in
# the same way, so they agree on the range of each feature and on the seed of the hidden weights.

import pickle

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer

from karnet import KARClassifier

X, y = load_breast_cancer(return_X_y=True)
X = (X - X.min(axis=0)) / (X.max(axis=0) - X.min(axis=0))
rows = np.random.default_rng(0).permutation(len(X))
sites = np.split(rows, [250, 400, 480, 530])
print("rows per site:", [len(site) for site in sites])


def network() -> KARClassifier:
    """Return the network that all sites agreed on."""
    return KARClassifier((40,), hidden="random", activation="tanh", alpha=1e-3, random_state=0)


# %%
# Each site fits its own network
# ------------------------------
# A site without rows of some class can name the class in `classes`, or leave it to the other sites:
# a class that appears later is added.

messages, alone = [], []
for site in sites:
    net = network().partial_fit(X[site], y[site])
    messages.append(pickle.dumps(net))
    alone.append(net.score(X, y))
    print(f"alone: accuracy {alone[-1]:.3f} on all rows, a message of {len(messages[-1])} bytes")

# %%
# Merge the networks
# ------------------
# Any site or a third party can merge the networks, in any order. A fingerprint of the hidden layers
# ensures that only networks with the same hidden layers are merged.

merged = pickle.loads(messages[0])
for message in messages[1:]:
    merged.merge(pickle.loads(message))
pooled = network().fit(X, y)
difference = np.abs(merged.coefs_[-1] - pooled.coefs_[-1]).max() / np.abs(pooled.coefs_[-1]).max()
print(f"merged: accuracy {merged.score(X, y):.3f} on all rows")
print(f"largest difference from the pooled network: {difference:.1e} of its largest weight")

names = [*(f"{len(site)} rows" for site in sites), "merged", "pooled"]
figure, axes = plt.subplots(figsize=(7.0, 3.2), layout="constrained")
axes.bar(names[:5], alone, color="#2a7fc4")
axes.bar(names[5:], [net.score(X, y) for net in (merged, pooled)], color="#d9640f")
axes.set(ylim=(0.8, 1.0), ylabel="accuracy on all rows")
plt.show()

# %%
# Remove patients
# ---------------
# Some patients withdraw their consent. The site that holds their rows calls `forget`, and the
# result is the network of the remaining rows.

removed, rest = sites[0][:25], np.concatenate([sites[0][25:], *sites[1:]])
merged.forget(X[removed], y[removed])
refit = network().fit(X[rest], y[rest])
forgotten = np.abs(merged.coefs_[-1] - refit.coefs_[-1]).max() / np.abs(refit.coefs_[-1]).max()
print(f"largest difference from a network fitted without them: {forgotten:.1e}")

# %%
# What the messages reveal
# ------------------------
# A message contains sums over the rows of a site: the number of rows, the means of the inputs of
# the output layer and of the classes, and their products. It contains no rows, and in a sum over
# many rows no single row stands out. But sums are not encrypted. They reveal the number of rows of
# each class. The difference of two messages, one with an additional row, reveals that row. If a
# site has fewer rows than hidden units, the products reveal the subspace that its rows span. Send
# only sums over many rows. If you need more protection, note that the sums are plain arrays: you
# can add noise to them, or add them up by secure aggregation.
#
# For brevity, this example sends pickles. Unpickle data only from sources you trust.
