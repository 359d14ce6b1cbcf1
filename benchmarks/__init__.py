"""Benchmarks, run by hand from the project's folder, e.g. ``python -m benchmarks.speed.complexity``.

``speed`` times, ``experiments`` train and score; each writes its report to ``results``, with the command that made it.
``summary`` writes the figures that the documentation quotes.
"""
