"""Adapters that let other libraries run karnet's estimators."""
