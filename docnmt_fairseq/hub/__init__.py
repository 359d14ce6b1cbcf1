"""Models of other projects: ``docnmt import`` and ``docnmt export``, and averages of checkpoints."""
