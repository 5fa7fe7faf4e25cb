"""
A table as people keep it
=========================

Words, dates, numbers and gaps. skrub's TableVectorizer makes numbers of them, an imputer fills the
gaps, and the network settles everything else. The pipeline is kept in a file that runs no code
when it is read.
"""

# %%
# Flats and their rents
# ---------------------
# Six hundred of them, made up by a rule that the network is not told: rent goes by size and part of
# town, less for what is old, more for what was done up. Some cells are empty.

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
# One pipeline
# ------------
# Nothing is said about any column. Categories become indicators, all of them, so that one that was
# never seen can be told from the others by having none.

X, X_new, y, y_new = train_test_split(flats, rent, random_state=0)
indicators = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
pipeline = make_pipeline(
    TableVectorizer(low_cardinality=indicators),
    SimpleImputer(strategy="median"),
    KARRegressorCV(random_state=0),
)
pipeline.fit(X, y)
score = pipeline.score(X_new, y_new)
print(f"R^2 expected {pipeline[-1].best_score_:.3f}, found {score:.3f}")

# %%
# Answers with intervals
# ----------------------
# Nine of ten rents should lie in theirs.

ends = pipeline[-1].predict_interval(pipeline[:-1].transform(X_new), coverage=0.9)
inside = np.mean((ends[:, 0] <= y_new) & (y_new <= ends[:, 1]))
print(f"{inside:.0%} of the rents lie in their intervals")

order = np.argsort(pipeline.predict(X_new))
figure, axes = plt.subplots(figsize=(7.0, 3.4), layout="constrained")
axes.fill_between(range(len(order)), *ends[order].T, color="#2a7fc4", alpha=0.3, label="90 %")
axes.plot(y_new.to_numpy()[order], ".", color="#d9640f", markersize=4, label="rents")
axes.set(xlabel="flats, by predicted rent", ylabel="rent")
axes.legend(frameon=False)
plt.show()

# %%
# Keep it, and take it elsewhere
# ------------------------------
# A new flat in a part of town that was never seen, with gaps, is no trouble. ``karnet fit`` does
# all of this for a file, without a line of Python: :doc:`/command-line`.

with tempfile.TemporaryDirectory() as folder:
    file = Path(folder) / "rents.karnet"
    karnet.save(pipeline, file)
    print(f"{file.stat().st_size / 1e6:.1f} MB")
    kept = karnet.load(file)

new = X_new.iloc[:1].assign(part="airport", floor=np.nan)
print(f"a flat by the airport: {kept.predict(new)[0]:.0f}")
same = np.array_equal(kept.predict(X_new), pipeline.predict(X_new))
print("the same answers from the file:", same)
