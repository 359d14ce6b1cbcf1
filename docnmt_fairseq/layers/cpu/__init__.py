"""Compiled steps of a search on CPUs: C++ sources, and the structures by which they are called."""
