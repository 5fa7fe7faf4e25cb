"""Columns as people have them become numbers: what a column is, its encoding, and its origin."""
