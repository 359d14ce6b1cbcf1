"""Shared code of the benchmarks: reports, measurements, systems to train, results of recipes."""
