"""Datasets: from a data-bin to batches of documents; independent of models."""
