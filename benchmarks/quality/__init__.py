"""Accuracy of karnet and of other libraries on the same folds of the same data sets."""
