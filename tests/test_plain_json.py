"""JSON of files: whatever names of files there are is written and read back, and no text ends a program."""

import pytest

from docnmt_fairseq.plain_json import json_bytes, parse_json


@pytest.mark.parametrize("name", ["Größe", "\udcff.en", "\\udcff", "一"], ids=ascii)
def test_every_name_is_read_back(name):
    content = json_bytes({"file": name}, indent=1)
    assert parse_json(content) == {"file": name} and content.splitlines()[0] == b"{"


def test_letters_are_written_as_they_are():
    assert json_bytes(["Größe"]) == '["Größe"]\n'.encode()


@pytest.mark.parametrize(
    "text", ["[" * 200_000, b"[" * 200_000, '{"a":' * 200_000, "[", b"\xff", ""], ids=lambda t: t[:1]
)
def test_what_is_no_json_is_a_wrong_value(text):
    with pytest.raises(ValueError):
        parse_json(text)
