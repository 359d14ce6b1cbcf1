"""fairseq tasks; fairseq imports every file of this folder for ``--user-dir``."""
