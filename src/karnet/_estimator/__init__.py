"""The parts of the scikit-learn estimators."""
