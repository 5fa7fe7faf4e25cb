"""
What does my model know?
========================

A model that predicts well may still be used wrongly. This example asks a fitted network which
columns matter, how predictions depend on them, which training rows are behind a single prediction,
how sure the prediction is, and for which rows it should not be used.
"""

# %%
# The data
# --------
# The table has ten measurements of 442 patients with diabetes: age, sex, body mass index, blood
# pressure and six blood values. The target is the progression of the disease one year later.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.inspection import PartialDependenceDisplay
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split

from karnet import KARRegressorCV
from karnet.inspection import RowInfluenceDisplay, column_effects, row_influence

X, y = load_diabetes(return_X_y=True, scaled=False)
names = np.array(load_diabetes().feature_names)
X, X_new, y, y_new = train_test_split(X, y, random_state=1)
net = KARRegressorCV(random_state=0).fit(X, y)
print(f"R^2 by leave-one-out {net.best_score_:.2f}, on new patients {net.score(X_new, y_new):.2f}")

# %%
# Which columns matter?
# ---------------------
# The importance of a column is the rise of the left-out error when its values are shuffled, as a
# share of all rises. It has a standard error, and it is 0 if the rise may be chance.

order = np.argsort(net.feature_importances_)
figure, axes = plt.subplots(figsize=(6.0, 3.2), layout="constrained")
importances, errors = net.feature_importances_[order], net.feature_importances_se_[order]
axes.barh(names[order], importances, xerr=errors, color="#2a7fc4", capsize=2)
axes.set(xlabel="share of the rises of the left-out error")
plt.show()

# %%
# Columns that say the same share their importance. If a second scale measures the body mass index,
# with small errors, the network predicts as well as before. Each of the two columns can now replace
# the other, and the importance of each of them is smaller.

rng = np.random.RandomState(0)
again = X[:, names == "bmi"] + rng.normal(0.0, 0.5, (len(X), 1))
twice = KARRegressorCV(random_state=0).fit(np.column_stack([X, again]), y)
once, *both = net.feature_importances_[names == "bmi"][0], *twice.feature_importances_[[2, 10]]
print(f"importance of bmi once {once:.0%}, of bmi twice {both[0]:.0%} and {both[1]:.0%}")

# %%
# How do predictions depend on them?
# ----------------------------------
# A thin curve is the prediction for one patient with other values of a column, and the thick curve
# is the mean. scikit-learn draws these figures for any of its estimators.

first = np.argsort(-net.feature_importances_)[:2]
figure, places = plt.subplots(1, 2, figsize=(8.0, 3.2), layout="constrained")
options = {"kind": "both", "subsample": 50, "random_state": 0, "feature_names": names}
PartialDependenceDisplay.from_estimator(net, X, first, grid_resolution=20, ax=places, **options)
plt.show()

# %%
# Why this prediction?
# --------------------
# We take the new patient with the highest prediction. `column_effects` says how far each column
# moved the prediction from its mean over values of other patients.

patient = X_new[[net.predict(X_new).argmax()]]
prediction = net.predict(patient)[0]
low, high = net.predict_interval(patient, coverage=0.9)[0]
print(f"prediction {prediction:.0f}, 90 % interval {low:.0f} to {high:.0f}")
effects = column_effects(net, patient)[0]
for k in np.argsort(-np.abs(effects))[:3]:
    print(f"{names[k]:4s} {patient[0, k]:6.1f}  effect {effects[k]:+.0f}")

# %%
# `row_influence` says how the prediction would change without each training patient, without a
# new fit. The most influential patients are not always the most similar ones: a similar patient
# whose target is as predicted changes little.

influence = row_influence(net, patient)
for k in influence.most_alike(3)[0]:
    print(f"similar: patient {k}, similarity {influence.similarities[0, k]:.2f}, target {y[k]:.0f}")
RowInfluenceDisplay.from_estimator(net, patient, n_rows=6, color="#2a7fc4")
plt.show()

# %%
# For which rows should it not be used?
# -------------------------------------
# The novelty of a row is above 1 if it is farther from all training rows than 95 % of these are
# from each other. We make foreign patients of new ones by shuffling every column independently:
# each value is possible, but the values do not go together.

foreign = np.column_stack([rng.permutation(column) for column in X_new.T])
novelty = np.concatenate([net.novelty(X_new), net.novelty(foreign)])
is_foreign = np.repeat([False, True], len(X_new))
auroc = roc_auc_score(is_foreign, novelty)
print(f"novelty above 1: {np.mean(novelty[~is_foreign] > 1.0):.0%} of the new patients")
print(f"and {np.mean(novelty[is_foreign] > 1.0):.0%} of the foreign ones, AUROC {auroc:.2f}")

# %%
# ``karnet fit --report`` writes these answers, and the groups of rows for which the model is wrong
# most, on one page: :doc:`/command-line`. The guide :doc:`/understanding` says when to use which.
