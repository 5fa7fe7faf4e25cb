"""The scikit-learn side of the estimators: parameters, checks, targets, fits, updates and scores."""
