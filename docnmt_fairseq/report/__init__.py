"""One HTML file about a checkpoint and a document: what context each word used, beside scores and training."""
