"""The lines of delimited text that are no sentences; everything that reads or writes documents agrees on them here."""

PARAGRAPH = "<p>"  # ends a paragraph; a symbol of every dictionary
DOCUMENT = ""  # ends a document


def is_mark(line: str) -> bool:
    """Whether a line, white space around it removed, is a boundary and no sentence."""
    return line in (DOCUMENT, PARAGRAPH)
