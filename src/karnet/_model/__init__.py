"""The fitted model as a value: its predictions, and what it says about rows and columns."""
