"""
A table with mixed columns
==========================

This example fits a table with categories, dates, numbers and missing values, and saves the model to
a file that runs no code when it is loaded. :class:`~karnet.KARRegressorCV` can fit such a data
frame directly (:doc:`/start`). Here, a pipeline encodes the columns with skrub's TableVectorizer
and imputes the missing values, so that you can replace each step by another one.
"""

# %%
# The data
# --------
# We generate six hundred flats and their rents. The rent is proportional to the size, depends on
# the part of town, is lower for old flats and higher for renovated ones. Some cells are empty.

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.impute import SimpleImputer
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from skrub import TableVectorizer

import karnet
from karnet import KARRegressorCV

rng = np.random.default_rng(0)
m = 600
parts = {"old town": 14.0, "harbour": 11.5, "station": 10.0, "hills": 12.5}
flats = pd.DataFrame(
    {
        "part": rng.choice(list(parts), m),
        "size": rng.normal(75.0, 20.0, m).clip(20.0, 150.0).round(),
        "built": pd.Timestamp("1950-01-01") + pd.to_timedelta(rng.integers(0, 25000, m), "D"),
        "done up": rng.choice(["yes", "no"], m, p=[0.3, 0.7]),
        "floor": rng.integers(0, 6, m).astype(float),
    }
)
per_metre = flats["part"].map(parts) - 0.04 * (2020 - flats["built"].dt.year)
per_metre += 2.0 * (flats["done up"] == "yes")
rent = (flats["size"] * per_metre + rng.normal(0.0, 40.0, m)).round()
flats.loc[rng.random(m) < 0.1, "floor"] = np.nan
flats.loc[rng.random(m) < 0.05, "done up"] = None
print(flats.head(4).to_string())

# %%
# The pipeline
# ------------
# TableVectorizer finds the type of each column. Each category becomes an indicator column, and a
# category that was not in the training set has zeros in all indicator columns.

X, X_new, y, y_new = train_test_split(flats, rent, random_state=0)
indicators = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
pipeline = make_pipeline(
    TableVectorizer(low_cardinality=indicators),
    SimpleImputer(strategy="median"),
    KARRegressorCV(random_state=0),
)
pipeline.fit(X, y)
score = pipeline.score(X_new, y_new)
print(f"R^2 estimated {pipeline[-1].best_score_:.3f}, on the test set {score:.3f}")

# %%
# Prediction intervals
# --------------------
# About nine of ten rents lie inside their 90 % intervals.

ends = pipeline[-1].predict_interval(pipeline[:-1].transform(X_new), coverage=0.9)
inside = np.mean((ends[:, 0] <= y_new) & (y_new <= ends[:, 1]))
print(f"{inside:.0%} of the rents are inside their intervals")

order = np.argsort(pipeline.predict(X_new))
figure, axes = plt.subplots(figsize=(7.0, 3.4), layout="constrained")
axes.fill_between(range(len(order)), *ends[order].T, color="#2a7fc4", alpha=0.3, label="90 %")
axes.plot(y_new.to_numpy()[order], ".", color="#d9640f", markersize=4, label="rents")
axes.set(xlabel="flats, by predicted rent", ylabel="rent")
axes.legend(frameon=False)
plt.show()

# %%
# Save and load the pipeline
# --------------------------
# The loaded pipeline also predicts the rent of a flat in a new part of town, with missing values.
# ``karnet fit`` does the same from the command line: :doc:`/command-line`.

with tempfile.TemporaryDirectory() as folder:
    file = Path(folder) / "rents.karnet"
    karnet.save(pipeline, file)
    print(f"{file.stat().st_size / 1e6:.1f} MB")
    loaded = karnet.load(file)

new = X_new.iloc[:1].assign(part="airport", floor=np.nan)
print(f"a flat by the airport: {loaded.predict(new)[0]:.0f}")
same = np.array_equal(loaded.predict(X_new), pipeline.predict(X_new))
print("same predictions after loading:", same)
