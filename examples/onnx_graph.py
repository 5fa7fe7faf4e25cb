"""
Exporting a network to ONNX
===========================

Export a pipeline as an ONNX graph to predict without Python or scikit-learn. onnxruntime evaluates
the graph. The graph computes in double precision throughout, so its probabilities agree with those
of the pipeline.
"""

# %%
# Fit and export
# --------------
# The rows that are passed to :func:`karnet.export.to_onnx` define the input of the graph: here an
# array in double precision.

from time import perf_counter

import matplotlib.pyplot as plt
import numpy as np
import onnxruntime
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from karnet import KARClassifierCV
from karnet.export import to_onnx

X, y = load_breast_cancer(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)
pipeline = make_pipeline(StandardScaler(), KARClassifierCV(random_state=0)).fit(X_train, y_train)
graph = to_onnx(pipeline, X_train[:1]).SerializeToString()
print(f"{len(graph) / 1e6:.1f} MB, test accuracy {pipeline.score(X_test, y_test):.1%}")

# %%
# Predict with the graph
# ----------------------

session = onnxruntime.InferenceSession(graph)
start = perf_counter()
label, probabilities = session.run(None, {"X": X_test})
print(f"{len(X_test)} rows in {1e3 * (perf_counter() - start):.0f} ms")
expected = pipeline.predict_proba(X_test)
difference = np.abs(probabilities - expected).max()
print(f"largest difference in probability: {difference:.0e}")
print("same labels:", np.array_equal(label, pipeline.predict(X_test)))

figure, axes = plt.subplots(figsize=(4.0, 3.6), layout="constrained")
axes.plot(expected[:, 1], probabilities[:, 1], ".", color="#2a7fc4")
axes.set(title="probability of a benign tumour", xlabel="pipeline", ylabel="graph")
plt.show()
