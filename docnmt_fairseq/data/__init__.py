"""From a data-bin to batches of documents; knows nothing of models."""
