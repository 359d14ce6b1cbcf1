"""The file in a data-bin that says what sentences begin with."""

import pytest

from docnmt_fairseq.corpus.language_tokens import FILE, read_language_tokens, write_language_tokens
from docnmt_fairseq.errors import InputError


def test_sides_without_a_token_are_left_out(tmp_path):
    write_language_tokens(tmp_path, {"en": None, "de": None})
    assert not list(tmp_path.iterdir()) and read_language_tokens(tmp_path) == {}
    write_language_tokens(tmp_path, {"en": None, "de": "▁__de__"})
    assert read_language_tokens(tmp_path) == {"de": "▁__de__"}


@pytest.mark.sampled(1)
@pytest.mark.parametrize("content", [b"", b"{", b'["de"]', b"1", b"\xff", b"[" * 100_000])
def test_a_damaged_file_is_named(tmp_path, content):
    (tmp_path / FILE).write_bytes(content)
    with pytest.raises(InputError, match=f"{FILE}: damaged; make the data-bin again"):
        read_language_tokens(tmp_path)
