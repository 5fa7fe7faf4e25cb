"""Pieces of HTML reports."""
