"""Long programs that measure reliability: accuracy, reproducibility, bad input, faults, load."""
