"""Benchmarks and experiments, run from the repository's root: ``python -m benchmarks.speed.complexity``.

``speed`` measures time and memory, ``experiments`` train and score models, ``gpu`` runs stages on a GPU. Each
writes its report and figures to ``results``. ``summary`` updates the figures quoted in docs/benchmarks.md.
"""
