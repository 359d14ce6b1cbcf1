"""Named architectures have the sizes of the options page and of the papers; the command line overrides them."""

import re
from argparse import Namespace
from pathlib import Path

import pytest
from fairseq.models import ARCH_CONFIG_REGISTRY

import docnmt_fairseq

docnmt_fairseq.register()
PAGE = Path(__file__).parents[2] / "docs" / "options.md"
SIZES = {
    size: tuple(int(number.replace(",", "")) for number in numbers.split(" | "))
    for size, numbers in re.findall(r"^\| (\w+) \| ([\d,]+ \| [\d,]+ \| \d+ \| \d+) \|", PAGE.read_text(), re.MULTILINE)
}
DROPOUT = dict(re.findall(r"^\| (\w+) \|(?: [\d,]+ \|){4} ([\d.]+) \|", PAGE.read_text(), re.MULTILINE))
SIDE = ("embed_dim", "ffn_embed_dim", "attention_heads", "layers")


def preset(name, **given):
    args = Namespace(**given)
    ARCH_CONFIG_REGISTRY[name](args)
    return args


def sizes(args):
    return [tuple(getattr(args, f"{side}_{name}") for name in SIDE) for side in ("encoder", "decoder")]


@pytest.mark.parametrize(
    "kind", ["document_transformer", "document_transformer_conditional", "concatenation_transformer"]
)
@pytest.mark.parametrize("size", ["tiny", "small", "iwslt", "base", "big"])
def test_sizes_of_the_page(kind, size):
    args = preset(f"{kind}_{size}")
    assert sizes(args) == [SIZES[size]] * 2 and args.dropout == float(DROPOUT[size])


STOCK = {"iwslt": "iwslt_de_en", "base": "wmt_en_de", "big": "vaswani_wmt_en_de_big"}


@pytest.mark.parametrize("size", STOCK)
def test_sizes_of_fairseq(size):
    assert sizes(preset(f"document_transformer_{size}")) == sizes(preset(f"transformer_{STOCK[size]}"))


def test_command_line_overrides_presets():
    args = preset("document_transformer_conditional_small", encoder_embed_dim=128, decoder_layers=2, dropout=0.0)
    assert sizes(args) == [(128, 1024, 4, 4), (128, 1024, 4, 2)] and args.dropout == 0.0
    args = preset("rnnsearch_small", attention_dim=7, decoder_cell="lstm")
    assert (args.attention_dim, args.encoder_hidden_size, args.decoder_cell) == (7, 256, "lstm")


TAUGHT = {"selection_loss": 1.0, "context_tie_qk_init": True}
BY_KEYS = {"tree_order": "keys", "tree_merge": "average", "tree_beam": 16}
NOT_BY_KEYS = dict.fromkeys(BY_KEYS)  # as they are by default


@pytest.mark.parametrize(
    ("mechanism", "given", "expected"),
    [
        ("conditional", {}, {**TAUGHT, **NOT_BY_KEYS}),
        ("conditional", {"selection_loss": 0.0}, {**TAUGHT, "selection_loss": 0.0}),  # the paper's training
        ("tree", {}, {**TAUGHT, **BY_KEYS}),
        ("tree", {"tree_merge": "average", "tree_beam": 4}, {**TAUGHT, **BY_KEYS, "tree_beam": 4}),
        ("tree", {"tree_order": "text"}, {**TAUGHT, **NOT_BY_KEYS, "tree_order": "text"}),
        ("tree", {"tree_merge": "source2token"}, {**TAUGHT, **NOT_BY_KEYS, "tree_merge": "source2token"}),
        ("tree", {"selection_score": "cumulative"}, {**TAUGHT, **NOT_BY_KEYS}),
        ("han", {}, {**dict.fromkeys(TAUGHT), **NOT_BY_KEYS}),
    ],
)
def test_presets_of_mechanisms(mechanism, given, expected):
    args = vars(preset(f"document_transformer_{mechanism}_tiny", **given))
    assert {name: args.get(name) for name in expected} == expected


@pytest.mark.parametrize("mechanism", ["conditional", "tree"])
def test_model_as_printed(mechanism):
    """[T] sec. 2-3: selection is the self-attention of every layer, the tree has the order of the text."""
    args = vars(preset(f"document_transformer_{mechanism}_paper_base"))
    printed = {"context_attention": mechanism, "context_placement": "replace", "context_layers": [0, 1, 2, 3, 4, 5]}
    assert {name: args[name] for name in printed} == printed
    assert not {*TAUGHT, *BY_KEYS} & {*args}  # defaults: no selection loss, text order
    assert vars(preset(f"document_transformer_{mechanism}_paper_base", context_layers=[1]))["context_layers"] == [1]


@pytest.mark.parametrize(
    ("name", "published"),
    [
        # Bahdanau et al. 2015, A.2.3: embeddings of 620, states and alignment of 1,000, maxout of 500.
        ("rnnsearch", {"encoder_embed_dim": 620, "encoder_hidden_size": 1000, "attention_dim": 1000,
                       "decoder_out_embed_dim": 500, "deep_output": "maxout"}),
        # [L] sec. 4.2 and 4.1.
        ("document_rnn_post_editing", {"encoder_embed_dim": 300, "encoder_hidden_size": 300, "attention_dim": 500,
                                       "decoder_hidden_size": 300, "attend_with": "updated"}),
        ("document_rnn_multimodal", {"encoder_embed_dim": 300, "encoder_hidden_size": 300, "attention_dim": 500,
                                     "decoder_hidden_size": 500, "decoder_cell": "conditional-gru"}),
        # [Z] sec. 4.3.1.
        ("document_rnn_zeng", {"encoder_embed_dim": 100, "encoder_cell": "ca-rnn", "attention_query": "cell"}),
    ],
)  # fmt: skip
def test_sizes_of_papers(name, published):
    args = vars(preset(name))
    assert {option: args[option] for option in published} == published
