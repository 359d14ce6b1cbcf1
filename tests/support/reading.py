"""Helpers of the tests of readers."""

import pytest

from docnmt_fairseq.corpus import readers
from docnmt_fairseq.corpus.readers import Reading
from docnmt_fairseq.errors import InputError

EN_DE = Reading("en", "de")


def read(name, arguments, options=EN_DE):
    paths = readers.resolve(name, [str(argument) for argument in arguments], options)
    return list(readers.read(name, paths, options))


def text(documents):
    return [document.paragraphs for document in documents]


def refused(name, arguments, *parts, options=EN_DE):
    with pytest.raises(InputError) as error:
        read(name, arguments, options)
    for part in parts:
        assert part in str(error.value)


def write(folder, name, content):
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8"))
    return path
