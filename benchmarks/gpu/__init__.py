"""Stages of measurements on a GPU; ``python -m benchmarks.gpu`` runs them."""
