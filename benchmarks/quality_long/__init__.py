"""Accuracy, time and memory of karnet and of other libraries on tables of many rows."""
