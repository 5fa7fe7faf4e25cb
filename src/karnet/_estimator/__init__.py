"""The scikit-learn side of the estimators: parameters, checks, targets, updates and scores."""
