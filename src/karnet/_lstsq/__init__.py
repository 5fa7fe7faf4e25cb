"""Minimum-norm least squares over blocks of rows."""
