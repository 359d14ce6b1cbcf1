"""Compilation, loading and calls of C++ code for CPUs; the kernels are next to the code that uses them."""
