"""How well karnet predicts, beside its peers, on the same folds of the same data sets."""
