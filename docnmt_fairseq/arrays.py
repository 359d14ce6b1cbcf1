"""What reading a damaged file of NumPy's raises."""

import tokenize
import zipfile
import zlib

UNREADABLE = (
    OSError,
    ValueError,
    KeyError,
    TypeError,
    AttributeError,
    EOFError,
    OverflowError,  # a shape that no machine has
    MemoryError,
    NotImplementedError,  # ways of compressing that nobody uses
    SyntaxError,
    tokenize.TokenError,  # the header is Python's way of writing a dictionary
    zipfile.BadZipFile,
    zlib.error,
)
