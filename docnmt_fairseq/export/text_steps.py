"""What goes with an exported model: the models of its text, and a page that says how to translate."""

import json
from pathlib import Path

from docnmt_fairseq.corpus.prepared import MANIFEST, is_prepared
from docnmt_fairseq.corpus.subwords import WITH_CODES
from docnmt_fairseq.corpus.text_codec import TextCodec
from docnmt_fairseq.files import copy_file, write_bytes

TEXT = "text"  # the folder of these, which TextCodec reads as an output of docnmt prepare
# Of the manifest's options those that TextCodec reads.
READ = (
    "source_lang", "target_lang", "tokenizer", "source_tokenizer", "target_tokenizer", "truecase", "subwords", "joint",
    "edits_of", "source_lang_token", "target_lang_token",
)  # fmt: skip
SEARCH = 'max_decoding_length=200, suppress_sequences=[["<pad>"]]'  # in the programs; no text has the padding
AS_PREPARED = """from pathlib import Path

import ctranslate2
from docnmt_fairseq.corpus.text_codec import TextCodec

text = TextCodec.of_output(Path("FOLDER/text"))
translator = ctranslate2.Translator("FOLDER")
sentences = ["A sentence.", "Another one."]
tokens = [line.split() for line in text.encode(0, sentences)]
found = translator.translate_batch(tokens, beam_size=5, SEARCH)
print([text.decode(" ".join(one.hypotheses[0])) for one in found])
"""
SUBWORDS_ONLY = """import ctranslate2
import sentencepiece

subwords = sentencepiece.SentencePieceProcessor(model_file="FOLDER/text/models/SOURCE")
joined = sentencepiece.SentencePieceProcessor(model_file="FOLDER/text/models/TARGET")
translator = ctranslate2.Translator("FOLDER")
tokens = subwords.encode(["A sentence.", "Another one."], out_type=str)
found = translator.translate_batch(tokens, beam_size=5, SEARCH)
print([joined.decode(one.hypotheses[0]) for one in found])
"""
TOKENS_ONLY = """import ctranslate2

translator = ctranslate2.Translator("FOLDER")
tokens = [line.split() for line in ["a sentence .", "another one ."]]  # as the training data were
found = translator.translate_batch(tokens, beam_size=5, SEARCH)
print([" ".join(one.hypotheses[0]) for one in found])
"""


def write_text_steps(data: Path, folder: Path) -> None:
    """Copies what turns text into tokens and back, where ``docnmt prepare`` made the data; writes the page.

    Args:
        data: what ``docnmt prepare`` wrote, or a data-bin.
        folder: of the exported model.

    Raises:
        InputError: a model of the text is missing; targets are edit operations.
    """
    if not is_prepared(data):
        _write(
            folder / "README.md", _page("its tokens, with spaces between, are those of the training data", TOKENS_ONLY)
        )
        return
    codec = TextCodec.of_output(data)
    codec.load()  # says what is missing
    options = {name: codec.options[name] for name in READ if name in codec.options}
    _write(folder / TEXT / MANIFEST, json.dumps({"options": options}, indent=2, sort_keys=True) + "\n")
    files = {name for side in codec.pipelines for name in (side.truecaser_file, side.subword_file) if name}
    for name in sorted(files):
        if (data / "models" / name).is_file():
            copy_file(data / "models" / name, folder / TEXT / "models" / name)
    _write(folder / "README.md", _page_of(codec))


def _page_of(codec: TextCodec) -> str:
    source, target = codec.pipelines
    steps = [f"tokenizer {name}" for name in dict.fromkeys((source.tokenizer, target.tokenizer)) if name != "none"]
    steps += ["truecasing"] if source.truecase else []
    if source.subwords != "none":
        steps.append("BPE by merges" if source.subwords in WITH_CODES else "SentencePiece")
    tokens = [source.language_token, target.language_token]
    steps += [f"a language token, {token}" for token in tokens if token]
    program = AS_PREPARED
    if steps == ["SentencePiece"]:
        program = SUBWORDS_ONLY.replace("SOURCE", str(source.subword_file)).replace("TARGET", str(target.subword_file))
    begin = f", target_prefix=[[{json.dumps(tokens[1])}]] * len(tokens)" if tokens[1] else ""
    return _page(f"text is prepared by: {', '.join(steps) or 'nothing but division at spaces'}", program, begin)


def _page(text: str, program: str, begin: str = "") -> str:
    program = program.replace("SEARCH", SEARCH + begin)
    return (
        "# A model of CTranslate2\n\n"
        f"Written by `docnmt export`. A sentence at a time is translated; {text}. With this folder as FOLDER:\n\n"
        f"```python\n{program}```\n"
    )


def _write(path: Path, text: str) -> None:
    write_bytes(path, text.encode("utf-8"))
