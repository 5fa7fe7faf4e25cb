"""
What does my model know?
========================

This example shows which columns matter for the predictions of a fitted model, how the predictions
depend on them, which training rows influence a single prediction, how certain the prediction is,
and for which rows the model should not be used.
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
# The importance of a column is the increase of the left-out error when its values are shuffled, as
# a share of the sum over all columns. It is 0 if the increase may be chance. The bars show standard
# errors.

order = np.argsort(net.feature_importances_)
figure, axes = plt.subplots(figsize=(6.0, 3.2), layout="constrained")
importances, errors = net.feature_importances_[order], net.feature_importances_se_[order]
axes.barh(names[order], importances, xerr=errors, color="#2a7fc4", capsize=2)
axes.set(xlabel="importance: share of the increases of the left-out error")
plt.show()

# %%
# Columns with the same information share their importance. We add a second measurement of the body
# mass index, with small errors. Each of the two columns can now replace the other, and the
# importance of each of them is smaller.

rng = np.random.RandomState(0)
again = X[:, names == "bmi"] + rng.normal(0.0, 0.5, (len(X), 1))
twice = KARRegressorCV(random_state=0).fit(np.column_stack([X, again]), y)
once, *both = net.feature_importances_[names == "bmi"][0], *twice.feature_importances_[[2, 10]]
print(f"importance of bmi once {once:.0%}, of bmi twice {both[0]:.0%} and {both[1]:.0%}")

# %%
# How do predictions depend on them?
# ----------------------------------
# Each thin curve shows the prediction for one patient as a function of a column, and the dashed
# curve is their mean. scikit-learn draws these figures for any estimator.

first = np.argsort(-net.feature_importances_)[:2]
figure, places = plt.subplots(1, 2, figsize=(8.0, 3.2), layout="constrained")
options = {"kind": "both", "subsample": 50, "random_state": 0, "feature_names": names}
PartialDependenceDisplay.from_estimator(net, X, first, grid_resolution=20, ax=places, **options)
plt.show()

# %%
# Why this prediction?
# --------------------
# We take the new patient with the highest prediction. `column_effects` returns the effect of each
# column: the prediction, minus the mean prediction with values of other patients in that column.

patient = X_new[[net.predict(X_new).argmax()]]
prediction = net.predict(patient)[0]
low, high = net.predict_interval(patient, coverage=0.9)[0]
print(f"prediction {prediction:.0f}, 90 % interval {low:.0f} to {high:.0f}")
effects = column_effects(net, patient)[0]
for k in np.argsort(-np.abs(effects))[:3]:
    print(f"{names[k]:4s} {patient[0, k]:6.1f}  effect {effects[k]:+.0f}")

# %%
# `row_influence` computes how the prediction would change without each training patient, and needs
# no new fit. The most influential patients are not always the most similar ones: a similar patient
# has little influence if the target is as predicted.

influence = row_influence(net, patient)
for k in influence.most_alike(3)[0]:
    print(f"similar: patient {k}, similarity {influence.similarities[0, k]:.2f}, target {y[k]:.0f}")
RowInfluenceDisplay.from_estimator(net, patient, n_rows=6, color="#2a7fc4")
plt.show()

# %%
# For which rows should it not be used?
# -------------------------------------
# The novelty of a row is its distance from the most similar training row. It is above 1 if this
# distance is larger than that of 95 % of the training rows. We make foreign patients of new ones by
# shuffling every column independently: each value is plausible, but the combination is not.

foreign = np.column_stack([rng.permutation(column) for column in X_new.T])
novelty = np.concatenate([net.novelty(X_new), net.novelty(foreign)])
is_foreign = np.repeat([False, True], len(X_new))
auroc = roc_auc_score(is_foreign, novelty)
print(f"novelty above 1: {np.mean(novelty[~is_foreign] > 1.0):.0%} of the new patients")
print(f"and {np.mean(novelty[is_foreign] > 1.0):.0%} of the foreign ones, AUROC {auroc:.2f}")

# %%
# ``karnet fit --report`` writes these answers on one page, together with the groups of rows that
# have the largest errors: :doc:`/command-line`. The guide :doc:`/understanding` has the details.
