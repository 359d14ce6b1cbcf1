"""Import of multilingual checkpoints of fairseq: M2M-100, NLLB-200, mBART-50."""

import re
import shutil

import pytest
import torch

from docnmt_fairseq.checkpoints import load_ensemble
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.search.options import SearchOptions
from docnmt_fairseq.translate.translator import DocumentTranslator
from tests.support import toy
from tests.support.fairseq_released import codec_of, log_probabilities, logits_of_fairseq, released, tokens, tokens_of
from tests.support.pretrained import ENGLISH, GERMAN, imported
from tests.support.toy import TINY

BOTH_SIDES = ["--encoder-langtok", "src", "--decoder-langtok"]
# How language tokens are asked for, and what they are.
TOKENS = {
    "multilingual": (BOTH_SIDES, ("__en__", "__de__")),
    "mbart": ([*BOTH_SIDES, "--lang-tok-style", "mbart"], ("[en]", "[de]")),
    "by --langtoks": (["--langtoks", "{'main': ('src', 'tgt')}"], ("__en__", "__de__")),
    "the target's, in the source": (
        [*BOTH_SIDES, "--langtoks", "{'main': ('tgt', None), 'mined': ('src', 'tgt')}"], ("__de__", None),
    ),
    "of mined data": (
        ["--langtoks-specs", "main,mined", "--langtoks", "{'main': ('src.mined', 'tgt')}"], ("__en_mined__", "__de__"),
    ),
}  # fmt: skip


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("options", "begins"), TOKENS.values(), ids=TOKENS)
def test_translations_equal_those_of_the_multilingual_task(binarised, tmp_path, options, begins):
    options = ["--langs", "de,en,fr", *options]
    place = released(
        binarised, tmp_path, *options, task="translation_multi_simple_epoch", updates="30",
    )  # fmt: skip
    imported(place, tmp_path / "imported")
    output = toy.generate_text(
        binarised / "bin", place / "model.pt", "--lang-pairs", "en-de", *options, "--source-lang", "en",
        "--target-lang", "de", "--beam", "3", "--max-len-b", "20",
        "--required-batch-size-multiple", "1", task="translation_multi_simple_epoch",
    )  # fmt: skip
    search = SearchOptions(beam=3, max_len_b=20)
    checkpoint = tmp_path / "imported" / "checkpoint.pt"
    translator = DocumentTranslator.from_checkpoint(checkpoint, search=search, cpu=True)
    lines = translator.translate_lines([ENGLISH])[0]
    found = toy.parse(output).hypotheses
    assert len(found) == len(ENGLISH)
    for number, line in enumerate(lines):
        assert line.translations[0].text == found[number][0].replace(" ", "").replace("▁", " ").strip()
    assert tokens_of(tmp_path / "imported") == begins


@pytest.fixture(scope="module")
def multilingual(binarised, tmp_path_factory):
    """Returns a model of three languages with tokens on both sides."""
    options = ["--langs", "de,en,fr", *BOTH_SIDES, "--share-all-embeddings"]
    folder = tmp_path_factory.mktemp("multilingual")
    return released(binarised, folder, *options, task="translation_multi_simple_epoch", updates="1")


def changed(place, folder, rows=0, **options):
    """Returns a copy with more embeddings and other task options."""
    shutil.copytree(place, folder)
    state = torch.load(folder / "model.pt", weights_only=True)
    for values in (state["cfg"]["task"], state["cfg"]["model"]):
        vars(values).update(options)
    more = torch.randn(rows, 8)
    for name in ("encoder.embed_tokens.weight", "decoder.embed_tokens.weight", "decoder.output_projection.weight"):
        state["model"][name] = torch.cat([state["model"][name], more])
    torch.save(state, folder / "model.pt")
    return folder


def test_nllb_data_source_symbols(multilingual, tmp_path):
    """Symbols of data sources, which only the NLLB branch of fairseq adds."""
    tagged = changed(multilingual, tmp_path / "tagged", rows=3, add_data_source_prefix_tags=True)
    plain, more = (
        load_ensemble(folder / "checkpoint.pt", data=folder)
        for folder in (imported(place, tmp_path / name) for place, name in ((multilingual, "a"), (tagged, "b")))
    )
    (few, _), (many, _) = plain.dictionaries, more.dictionaries
    assert few.symbols[-4:] == ["__de__", "__en__", "__fr__", "<p>"]
    assert many.symbols == [*few.symbols[:-1], "<MINED_DATA>", "<MMT_BT_DATA>", "<SMT_BT_DATA>", "<p>"]
    source, previous = torch.tensor([[few.index("__en__"), 9, 8, 2]]), torch.tensor([[2, few.index("__de__"), 7]])
    with torch.no_grad():
        logits = [one.model(source, torch.tensor([4]), previous)[0] for one in (plain, more)]
    torch.testing.assert_close(logits[0][..., : len(few) - 1], logits[1][..., : len(few) - 1])


def test_missing_target_language_is_refused(multilingual, tmp_path):
    none = dict(langtoks={}, encoder_langtok=None, decoder_langtok=False)
    one = changed(multilingual, tmp_path / "one", **none)
    assert tokens_of(imported(one, tmp_path / "imported")) == (None, None)
    several = changed(multilingual, tmp_path / "several", **none, lang_pairs=["en-de", "en-fr"])
    with pytest.raises(InputError):
        imported(several, tmp_path / "other")


def test_mbart_50_equals_fairseq(binarised, tmp_path):
    """Architecture, languages in a file, and names of dictionaries of mBART-50."""
    names = {"en": "en_XX", "de": "de_DE"}
    for file in (binarised / "bin").iterdir():
        called = file.name
        for side, name in names.items():
            called = re.sub(rf"(?<=[.-]){side}(?=[.-])", name, called)
        (tmp_path / "bin").mkdir(exist_ok=True)
        shutil.copy(file, tmp_path / "bin" / called)
    (tmp_path / "ML50_langs.txt").write_text("ar_AR\nde_DE\nen_XX\n")
    task = ["--lang-dict", str(tmp_path / "ML50_langs.txt"), "--lang-tok-style", "mbart", *BOTH_SIDES]
    settings = ["--lang-pairs", "en_XX-de_DE", "--sampling-method", "concat", "--max-update", "2", "--lr", "0.01"]
    settings += ["--encoder-normalize-before", "--decoder-normalize-before", "--share-all-embeddings"]
    multilingual = dict(task="translation_multi_simple_epoch", arch="mbart_large", tiny=TINY)
    trained = toy.train(tmp_path / "bin", tmp_path / "saved", *settings, *task, **multilingual)
    place = tmp_path / "released"
    place.mkdir()
    for file in (trained, tmp_path / "ML50_langs.txt", binarised / "spm.model", *(tmp_path / "bin").glob("dict.*")):
        shutil.copy(file, place)
    (tmp_path / "ML50_langs.txt").unlink()
    imported(place, tmp_path / "imported")
    assert tokens_of(tmp_path / "imported") == ("[en_XX]", "[de_DE]")
    ours = load_ensemble(tmp_path / "imported" / "checkpoint.pt", data=tmp_path / "imported")
    assert ours.model.encoder.layernorm_embedding is not None and ours.model.cfg.word_positions == "learned"
    overrides = dict(lang_dict=str(place / "ML50_langs.txt"), source_lang="en_XX", target_lang="de_DE")
    theirs, task = logits_of_fairseq(place / trained.name, tmp_path / "bin", **overrides)
    assert type(theirs).__name__ == "BARTModel"
    codec, there = codec_of(tmp_path), [ours.dictionaries[1].index(symbol) for symbol in task.target_dictionary.symbols]
    there[-1] = ours.dictionaries[1].index("<p>")  # in the place of <mask>
    for source, target in zip(ENGLISH, GERMAN):
        ids = tokens(codec, source, target, ours.dictionaries)
        found, expected = log_probabilities(ours.model, *ids)[:, there], log_probabilities(theirs, *ids)
        torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize(
    ("value", "message"),
    [(float("inf"), "no finite numbers"), (None, "is of type int8"), ("text", "is no tensor")],
)
def test_bad_weights(binarised, multilingual, tmp_path, value, message):
    place = changed(multilingual, tmp_path / "released")
    state = torch.load(place / "model.pt", weights_only=True)
    weight = state["model"]["encoder.layers.0.fc1.weight"]
    made = value if isinstance(value, str) else weight.to(torch.int8) if value is None else weight.fill_(value)
    state["model"]["encoder.layers.0.fc1.weight"] = made
    torch.save(state, place / "model.pt")
    with pytest.raises(InputError):
        imported(place, tmp_path / "imported")
