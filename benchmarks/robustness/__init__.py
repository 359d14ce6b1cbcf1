"""Faults that are made on purpose, and what is left after them."""
