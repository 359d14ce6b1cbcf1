"""The run-book of a GPU: one stage a file, each of figures by point; ``python -m benchmarks.gpu`` runs them."""
