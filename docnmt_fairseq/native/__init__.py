"""Compiled C++ for CPUs: how the library is built, found and called. Kernels stand where they are used."""
