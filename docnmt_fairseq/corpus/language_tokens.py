"""Language tokens: the symbols that multilingual models begin sentences with, such as ``__de__`` or ``deu_Latn``.

They belong to the sentence: every sentence of a data-bin begins with that of its side, marks between sentences have
none. A data-bin says in a file which they are, so that searches begin translations with it and texts leave it out.
"""

import json
from pathlib import Path
from typing import Dict, Mapping, Optional

from docnmt_fairseq.corpus.files import atomic_write_bytes
from docnmt_fairseq.corpus.transform import BatchFunction
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.plain_json import parse_json

FILE = "language-tokens.json"


def beginning_with(token: Optional[str], encode: BatchFunction) -> BatchFunction:
    """The function from sentences to tokens, with a language token before those of each, if there is one.

    Where nothing is left of a sentence, there is none: it would pass for one.
    """
    if token is None:
        return encode
    return lambda sentences: [tokens and f"{token} {tokens}" for tokens in encode(sentences)]


def write_language_tokens(data_bin: Path, tokens: Mapping[str, Optional[str]]) -> None:
    """Writes which side of a data-bin has which token; nothing where none has one."""
    there = {side: token for side, token in tokens.items() if token is not None}
    if there:
        atomic_write_bytes(data_bin / FILE, (json.dumps(there, ensure_ascii=False) + "\n").encode())


def read_language_tokens(data_bin: Path) -> Dict[str, str]:
    """The tokens of a data-bin by side; empty: no side has one.

    Raises:
        InputError: the file is damaged.
    """
    path = data_bin / FILE
    if not path.is_file():
        return {}
    try:
        return {str(side): str(token) for side, token in parse_json(path.read_text(encoding="utf-8")).items()}
    except (ValueError, AttributeError) as error:
        raise InputError(f"{path}: damaged; make the data-bin again") from error
