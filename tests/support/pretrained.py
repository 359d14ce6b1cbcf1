"""Small models of Hugging Face's transformers in folders as on the hub."""

import io
import json
import sys

import pytest
import sentencepiece
import torch

try:
    import torchaudio  # noqa: F401  (installed with fairseq, may be built for a GPU)
except (ImportError, OSError):
    sys.modules["torchaudio"] = None  # otherwise transformers fails at it
transformers = pytest.importorskip("transformers")

from docnmt_fairseq.errors import InputError  # noqa: E402
from docnmt_fairseq.hub.base import ImportOptions  # noqa: E402
from docnmt_fairseq.hub.importing import import_model  # noqa: E402

ENGLISH = [
    "the cat sat on the mat .",
    "a dog barks at the grey cat .",
    "they were born in winter .",
    "she sees the old grey house .",
    "he has never been there before .",
    "it is a small world , after all .",
    "who would have thought of that ?",
]
GERMAN = [
    "die Katze saß auf der Matte .",
    "ein Hund bellt die graue Katze an .",
    "sie wurden im Winter geboren .",
    "sie sieht das alte graue Haus .",
    "er war noch nie dort .",
    "die Welt ist klein .",
    "wer hätte das gedacht ?",
]
LANGUAGES = ("en", "de")


def train_sentencepiece(path, lines, size, **settings):
    """Trains a SentencePiece model and writes it to a file."""
    content = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines * 3), model_writer=content, vocab_size=size, hard_vocab_limit=False,
        num_threads=1, minloglevel=2, **settings,
    )  # fmt: skip
    path.write_bytes(content.getvalue())
    return sentencepiece.SentencePieceProcessor(model_proto=content.getvalue())


def pieces_of(processor):
    """Returns all pieces but special symbols."""
    numbers = range(processor.get_piece_size())
    return [processor.id_to_piece(n) for n in numbers if not (processor.is_control(n) or processor.is_unknown(n))]


def taught(model, tokenizer, steps=60):
    """Trains a few steps, so that translations depend on the source and end; returns the model."""
    batch = tokenizer(ENGLISH, text_target=GERMAN, return_tensors="pt", padding=True)
    batch["labels"][batch["labels"] == tokenizer.pad_token_id] = -100
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(steps):
        loss = model.train()(**batch).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return model.eval()


def stirred(model, std=0.15, seed=3):
    """Gives every parameter a random value; returns the model."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.requires_grad:
                parameter.normal_(1 if "norm" in name and name.endswith("weight") else 0, std, generator=generator)
        bias = getattr(model, "final_logits_bias", None)
        if bias is not None:
            bias.normal_(0, 1, generator=generator)
    return model.eval()


SIZES = dict(
    d_model=16, encoder_layers=2, decoder_layers=2, encoder_ffn_dim=24, decoder_ffn_dim=20, encoder_attention_heads=4,
    decoder_attention_heads=2, max_position_embeddings=64, dropout=0.0, attention_dropout=0.0,
)  # fmt: skip


def marian_folder(folder, codes=(), separate=False, **settings):
    """Writes a MarianMT to a folder; returns it."""
    folder.mkdir(parents=True, exist_ok=True)
    found = [
        train_sentencepiece(folder / f"{side}.spm", lines, 60)
        for side, lines in (("source", ENGLISH), ("target", GERMAN))
    ]
    sides = [pieces_of(processor) for processor in found]
    if not separate:
        sides = [list(dict.fromkeys([*sides[0], *sides[1]]))]
    ids, size = [], min(map(len, sides)) - 1  # SentencePiece has one or two pieces more
    for pieces in sides:
        pieces = pieces[:size]
        symbols = ["</s>", "<unk>", *pieces, *codes, "<pad>"]
        ids.append({symbol: number for number, symbol in enumerate(symbols)})
    for name, numbered in zip(("vocab.json", "target_vocab.json"), ids):
        (folder / name).write_text(json.dumps(numbered, ensure_ascii=False))
    if separate:
        settings.update(decoder_vocab_size=len(ids[1]), share_encoder_decoder_embeddings=False)
    else:
        settings.setdefault("decoder_vocab_size", len(ids[0]))
    pad = len(ids[-1]) - 1
    config = transformers.MarianConfig(**{
        **SIZES, "vocab_size": len(ids[0]), "pad_token_id": pad, "eos_token_id": 0, "decoder_start_token_id": pad,
        "forced_eos_token_id": None, "scale_embedding": True, "activation_function": "swish", **settings,
    })  # fmt: skip
    (folder / "tokenizer_config.json").write_text(
        json.dumps({"source_lang": "en", "target_lang": "de", "separate_vocabs": separate})
    )
    tokenizer = transformers.MarianTokenizer.from_pretrained(folder)
    model = taught(stirred(transformers.MarianMTModel(config)), tokenizer)
    model.save_pretrained(folder)
    (folder / "README.md").write_text("---\nlanguage: en\nlicense: apache-2.0\n---\n# A model\n")
    return model


def multilingual_folder(folder, kind, saved_tokenizer=False, **settings):
    """Writes an M2M-100 ("m2m"), NLLB-200 ("nllb") or mBART-50 ("mbart") to a folder; returns it and its tokenizer.

    ``saved_tokenizer``: with tokenizer.json, which numbers the language tokens; otherwise only their order is given.
    """
    folder.mkdir(parents=True, exist_ok=True)
    algorithm = {"m2m": "unigram", "nllb": "bpe", "mbart": "unigram"}[kind]
    processor = train_sentencepiece(folder / "sentencepiece.bpe.model", ENGLISH + GERMAN, 90, model_type=algorithm)
    names = {"m2m": "M2M100Tokenizer", "nllb": "NllbTokenizer", "mbart": "MBart50Tokenizer"}
    module = sys.modules[getattr(transformers, names[kind]).__module__]
    codes = module.FAIRSEQ_LANGUAGE_CODES
    pieces = processor.get_piece_size() + 1
    if kind == "m2m":
        symbols = ["<s>", "<pad>", "</s>", "<unk>", *pieces_of(processor)]
        numbered = {symbol: number for number, symbol in enumerate(symbols)}
        (folder / "vocab.json").write_text(json.dumps(numbered, ensure_ascii=False))
        pieces, codes = len(symbols), [f"__{code}__" for code in codes["m2m100"]]
    special = {"additional_special_tokens": list(codes), "eos_token": "</s>"}
    (folder / "special_tokens_map.json").write_text(json.dumps(special))
    (folder / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": names[kind]}))
    english, german = {"m2m": ("en", "de"), "nllb": ("eng_Latn", "deu_Latn"), "mbart": ("en_XX", "de_DE")}[kind]
    if kind == "nllb":
        _write_tokenizer(folder, codes)
    tokenizer = getattr(transformers, names[kind]).from_pretrained(folder, src_lang=english, tgt_lang=german)
    if saved_tokenizer:
        (folder / "special_tokens_map.json").unlink()
    else:
        (folder / "tokenizer.json").unlink(missing_ok=True)
    # <mask> and unused rows
    size = pieces + len(codes) + {"m2m": 8, "nllb": 3, "mbart": 1}[kind]
    values = {
        **SIZES, "vocab_size": size, "pad_token_id": 1, "eos_token_id": 2, "bos_token_id": 0, "scale_embedding": True,
        "decoder_start_token_id": 2, "forced_eos_token_id": None, "activation_function": "relu",
        "encoder_layerdrop": 0.0, "decoder_layerdrop": 0.0, **settings,
    }  # fmt: skip
    if kind == "mbart":
        model = transformers.MBartForConditionalGeneration(transformers.MBartConfig(**values))
    else:
        model = transformers.M2M100ForConditionalGeneration(transformers.M2M100Config(**values))
    taught(stirred(model), tokenizer).save_pretrained(folder)
    return model, tokenizer


def _write_tokenizer(folder, codes):
    """Writes tokenizer.json as on the hub: the languages, then <mask>; transformers would number them differently."""
    transformers.NllbTokenizer.from_pretrained(folder, extra_special_tokens=codes).save_pretrained(folder / "saved")
    content = json.loads((folder / "saved" / "tokenizer.json").read_text())
    added = {token["content"]: token for token in content["added_tokens"]}
    first = added["<mask>"]["id"]
    for number, token in enumerate([*codes, "<mask>"], start=first):
        added[token]["id"] = number
        content["model"]["vocab"].pop(token, None)
    content["added_tokens"] = sorted(added.values(), key=lambda token: token["id"])
    (folder / "tokenizer.json").write_text(json.dumps(content, ensure_ascii=False))


def imported(folder, output, languages=LANGUAGES, codes=(None, None), **settings):
    """Imports a folder; returns the output folder."""
    options = dict(source_code=codes[0], target_code=codes[1], **settings)
    import_model(str(folder), ImportOptions(*languages, output, **options))
    return output


def refused(folder, match, **settings):
    """Asserts that a folder is refused in one line and nothing is written."""
    output = folder.parent / "imported"
    with pytest.raises(InputError, match=match) as error:
        imported(folder, output, **settings)
    assert "\n" not in str(error.value)
    assert not output.exists() and not list(folder.parent.glob("*.partial"))


def changed(path, **values):
    """Changes values of a JSON file."""
    content = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps({**content, **values}), encoding="utf-8")
