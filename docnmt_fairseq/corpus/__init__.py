"""Text on disk: the delimited format, readers of native formats, and everything that turns them into a data-bin."""
