"""Rows of a table in blocks, and the reduction over them, wherever the rows are."""
