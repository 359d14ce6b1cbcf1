"""Kernel ``compiled``: C++ sources, and the structures by which they are called."""
