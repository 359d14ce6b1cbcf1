"""The compiled kernel: C++ sources, and the structures by which they are called."""
