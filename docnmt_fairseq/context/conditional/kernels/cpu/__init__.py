"""The compiled kernel's C++ sources, how they are built, and how the library is found at run time."""
