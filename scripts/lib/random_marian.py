"""Writes a randomly initialised MarianMT in the file layout of the hub, for tests of scripts.

usage: python random_marian.py FOLDER SOURCE_TEXT TARGET_TEXT   (needs transformers)
"""

import io
import json
import sys
from pathlib import Path

import sentencepiece

try:
    import torchaudio  # noqa: F401  (a dependency of fairseq; its build may need a GPU)
except (ImportError, OSError):
    sys.modules["torchaudio"] = None  # type: ignore[assignment]  # transformers imports it
import transformers

PIECES = 200  # at most, of either language


def main(folder: Path, texts: list[Path]) -> None:
    """Writes the model, its vocabulary and its subword models."""
    folder.mkdir(parents=True, exist_ok=True)
    pieces: list[str] = []
    for name, text in zip(("source.spm", "target.spm"), texts):
        content = io.BytesIO()
        lines = [line for line in text.read_text(encoding="utf-8").splitlines() if line not in ("", "<p>")]
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(lines),
            model_writer=content,
            vocab_size=PIECES,
            hard_vocab_limit=False,
            minloglevel=2,
        )
        (folder / name).write_bytes(content.getvalue())
        processor = sentencepiece.SentencePieceProcessor(model_proto=content.getvalue())
        numbers = range(processor.get_piece_size())
        pieces += [
            processor.id_to_piece(n) for n in numbers if not (processor.is_control(n) or processor.is_unknown(n))
        ]
    symbols = ["</s>", "<unk>", *dict.fromkeys(pieces), "<pad>"]
    ids = {symbol: number for number, symbol in enumerate(symbols)}
    (folder / "vocab.json").write_text(json.dumps(ids, ensure_ascii=False), encoding="utf-8")
    transformers.set_seed(1)
    config = transformers.MarianConfig(
        vocab_size=len(ids), decoder_vocab_size=len(ids), pad_token_id=ids["<pad>"], eos_token_id=ids["</s>"],
        decoder_start_token_id=ids["<pad>"], forced_eos_token_id=ids["</s>"], d_model=32, encoder_layers=2,
        decoder_layers=2, encoder_ffn_dim=64, decoder_ffn_dim=64, encoder_attention_heads=4,
        decoder_attention_heads=4, max_position_embeddings=512, scale_embedding=True, activation_function="swish",
    )  # fmt: skip
    transformers.MarianMTModel(config).save_pretrained(folder)
    card = "---\nlicense: mit\n---\n# Randomly initialised: translates nothing\n"
    (folder / "README.md").write_text(card, encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]), [Path(name) for name in sys.argv[2:4]])
