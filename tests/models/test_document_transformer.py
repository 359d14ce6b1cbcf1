from argparse import Namespace

import pytest
import torch
from omegaconf import OmegaConf

from docnmt_fairseq.batch.layout import DocumentLayout
from docnmt_fairseq.context.base import CONTEXT_MECHANISMS, DECODER_MECHANISMS, TARGET_MECHANISMS
from docnmt_fairseq.layers.positions import ADDED_LEVELS
from tests.support import toy
from tests.support.decoding import logits, stir
from tests.support.marks import slow_except

VARIANTS = {"plain": []}
for _name in CONTEXT_MECHANISMS.names():
    for _placement in CONTEXT_MECHANISMS[_name].placements:
        VARIANTS[f"{_name}-{_placement}"] = ["--context-attention", _name, "--context-placement", _placement]
for _name in DECODER_MECHANISMS.names():
    VARIANTS[f"{_name}-decoder"] = ["--decoder-context-attention", _name, "--decoder-context-layers", "0,1"]
    VARIANTS[f"conditional-and-{_name}-decoder"] = [
        "--context-attention", "conditional", "--decoder-context-attention", _name
    ]  # fmt: skip
TARGET_VARIANTS = {}
for _name in TARGET_MECHANISMS.names():
    TARGET_VARIANTS[f"{_name}-target"] = ["--target-context-attention", _name]
    TARGET_VARIANTS[f"everywhere-and-{_name}-target"] = [
        "--context-attention", _name, "--decoder-context-attention", "sentence-encodings",
        "--target-context-attention", _name,
    ]  # fmt: skip
VARIANTS.update(TARGET_VARIANTS)
PRE_NORM = ["--encoder-normalize-before", "--decoder-normalize-before"]
POSITIONS = [part for level in ADDED_LEVELS for part in (f"--{level}-positions", "learned")]
QUICK = (
    "plain", "conditional-block", "memory-gated-feed-forward", "sentence-encodings-heads", "tree-replace",
    "ca-att-decoder", "han-target",
)  # fmt: skip
every_variant = pytest.mark.parametrize("variant", slow_except(QUICK, VARIANTS))


@pytest.fixture(scope="module")
def stock(data_bin):
    """Returns the stock Transformer, and the checkpoint state that it would save."""
    _, _, model = toy.build(data_bin, task="translation", arch="transformer")
    return stir(model)


@every_variant
@pytest.mark.parametrize("norm", [[], pytest.param(PRE_NORM, marks=pytest.mark.slow)], ids=["post-norm", "pre-norm"])
def test_new_model_equals_stock_transformer(data_bin, variant, norm):
    _, _, stock = toy.build(data_bin, *norm, task="translation", arch="transformer")
    stir(stock)
    _, task, model = toy.build(data_bin, *norm, *VARIANTS[variant], *POSITIONS)
    model.load_state_dict(stock.state_dict(), strict=True)
    sample = toy.batch_of(task)
    if variant.endswith("replace"):  # not an added sub-layer: equal where there is no context
        lengths = sample["net_input"]["layout"].tokens.lengths
        sample["net_input"]["layout"] = DocumentLayout.of_single_sentences(lengths)
    net_input = {key: value for key, value in sample["net_input"].items() if key != "layout"}
    real = sample["target"].ne(1)
    expected = stock(**net_input)[0]
    torch.testing.assert_close(logits(model, sample)[real], expected[real], atol=1e-5, rtol=1e-5)


@every_variant
def test_without_context_sentences_are_independent(data_bin, variant):
    _, task, model = toy.build(data_bin, "--context", "none", *VARIANTS[variant], *POSITIONS)
    stir(model)
    sample = toy.batch_of(task)
    together = logits(model, sample)
    for row in range(len(together)):
        length, target = int(sample["net_input"]["src_lengths"][row]), int(sample["target"][row].ne(1).sum())
        alone = logits(
            model,
            {
                "net_input": {
                    "src_tokens": sample["net_input"]["src_tokens"][row : row + 1, :length],
                    "src_lengths": torch.tensor([length]),
                    "prev_output_tokens": sample["net_input"]["prev_output_tokens"][row : row + 1, :target],
                }
            },
        )
        torch.testing.assert_close(together[row, :target], alone[0], atol=1e-5, rtol=1e-5)


@every_variant
def test_document_is_independent_of_its_batch(data_bin, variant):
    _, task, model = toy.build(data_bin, *VARIANTS[variant], *POSITIONS)
    stir(model)
    sample = toy.batch_of(task)
    rows = {int(number): values for number, values in zip(sample["id"], logits(model, sample))}
    dataset = task.dataset("test")
    for numbers in ([2, 0], [1]):
        part = dataset.collater([dataset[number] for number in numbers])
        for number, values, target in zip(part["id"].tolist(), logits(model, part), part["target"]):
            real = target.ne(1)
            torch.testing.assert_close(values[real], rows[number][: len(real)][real], atol=1e-5, rtol=1e-5)


@every_variant
def test_packed_loss_equals_padded_loss(data_bin, variant):
    cfg, task, model = toy.build(
        data_bin, *VARIANTS[variant], "--criterion", "label_smoothed_cross_entropy", "--label-smoothing", "0.1"
    )
    stir(model)
    criterion = task.build_criterion(cfg.criterion)
    sample = toy.batch_of(task)
    validation, _, _ = criterion(model, sample)
    model.train()
    packed, size, _ = criterion(model, sample)
    assert size == int(sample["target"].ne(1).sum())
    assert model(**sample["net_input"])[0].shape[0] == size
    torch.testing.assert_close(packed, validation, atol=1e-4, rtol=1e-5)


@pytest.mark.parametrize("variant", slow_except(QUICK, [name for name in VARIANTS if name not in TARGET_VARIANTS]))
def test_incremental_decoding_equals_full_decoding(data_bin, variant):
    _, task, model = toy.build(data_bin, *VARIANTS[variant], *POSITIONS)
    stir(model)
    sample = toy.batch_of(task)
    full = logits(model, sample)
    encoder_out = model.encoder.forward_torchscript(sample["net_input"])
    previous, state = sample["net_input"]["prev_output_tokens"], {}
    steps = [
        model.decoder(previous[:, : step + 1], encoder_out=encoder_out, incremental_state=state)[0]
        for step in range(previous.size(1))
    ]
    real = sample["target"].ne(1)
    torch.testing.assert_close(torch.cat(steps, dim=1)[real], full[real], atol=1e-4, rtol=1e-4)


VARIANTS["memory-without-attention"] = [*VARIANTS["memory-gated-feed-forward"], "--memory-without-attention", *PRE_NORM]


@pytest.mark.parametrize("variant", slow_except(QUICK, VARIANTS))
def test_every_parameter_gets_a_gradient(data_bin, variant):
    _, task, model = toy.build(data_bin, *VARIANTS[variant], *POSITIONS)
    stir(model).train()
    output, _ = model(**toy.batch_of(task)["net_input"])
    output.sin().sum().backward()
    without = [name for name, parameter in model.named_parameters() if parameter.grad is None]
    assert not without


def test_sentence_level_embeddings_initialise_context_aware_ones(data_bin):
    _, _, sentence = toy.build(data_bin, "--share-all-embeddings")
    _, _, model = toy.build(data_bin, "--share-all-embeddings", "--token-embedding", "ca-em")
    model.load_state_dict(stir(sentence).state_dict(), strict=True)
    assert torch.equal(model.decoder.embed_tokens.weight, sentence.decoder.embed_tokens.weight)


def test_missing_parameters_of_a_part_are_reported(data_bin):
    _, _, model = toy.build(data_bin, *VARIANTS["conditional-block"])
    state = model.state_dict()
    lost = "encoder.layers.1.context.sentence_q_proj.weight"
    del state[lost]
    with pytest.raises(RuntimeError, match=lost):
        model.load_state_dict(state, strict=True)


def test_checkpoint_keeps_its_learned_positions(data_bin):
    _, _, sentence = toy.build(data_bin, "--sentence-positions", "learned")
    _, _, document = toy.build(data_bin, *VARIANTS["conditional-block"], *POSITIONS)
    document.load_state_dict(stir(sentence).state_dict(), strict=True)
    table = "encoder.embed_positions.sentence.weight"
    assert torch.equal(document.state_dict()[table], sentence.state_dict()[table])


@pytest.mark.parametrize("variant", ["conditional-block", "sentence-encodings-decoder"])
def test_scoring_of_other_targets(data_bin, variant):
    _, task, model = toy.build(data_bin, *VARIANTS[variant])
    stir(model)
    sample = toy.batch_of(task)
    own = logits(model, sample)
    previous = sample["net_input"]["prev_output_tokens"]
    longer = torch.cat([previous, torch.full_like(previous[:, :2], 5)], dim=1)
    longer = torch.where(longer.eq(1), 6, longer)
    scored = logits(model, sample, prev_output_tokens=longer)
    assert scored.shape[1] == longer.shape[1] and (scored.abs().sum(-1) > 0).all()
    real = sample["target"].ne(1)
    torch.testing.assert_close(scored[:, : previous.size(1)][real], own[real], atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize(
    ("options", "expected"), [(["conditional"], [2, 3]), (["han"], [3]), (["han", "--context-layers", "0,2"], [0, 2])]
)
def test_default_context_layers(data_bin, options, expected):
    _, _, model = toy.build(data_bin, "--encoder-layers", "4", "--context-attention", *options)
    assert [number for number, layer in enumerate(model.encoder.layers) if hasattr(layer, "context")] == expected


def test_frozen_model_trains_context(data_bin):
    _, _, model = toy.build(data_bin, *VARIANTS["conditional-block"], *POSITIONS, "--freeze-sentence-model")
    trained = {name.split(".")[-2] for name, parameter in model.named_parameters() if parameter.requires_grad}
    assert {"sentence_q_proj", "context_layer_norm", *ADDED_LEVELS} <= trained
    assert not {"fc1", "embed_tokens", "word", "encoder_attn_layer_norm"} & trained


@pytest.mark.parametrize(
    ("added", "trained"),
    [
        (["--sentence-positions", "learned"], {"encoder.embed_positions.sentence.weight"}),
        (
            ["--token-embedding", "ca-em", "--share-all-embeddings"],
            {f"encoder.embed_tokens.{name}" for name in ("theta", "v_0", "for_chi.weight")},
        ),
    ],
)
def test_frozen_model_trains_other_added_parameters(data_bin, added, trained):
    _, _, model = toy.build(data_bin, *added, "--freeze-sentence-model")
    assert {name for name, parameter in model.named_parameters() if parameter.requires_grad} == trained


def test_frozen_model_with_recomputed_activations(data_bin):
    def built(*options):
        cfg, task, model = toy.build(data_bin, *VARIANTS["conditional-block"], "--freeze-sentence-model", *options)
        return cfg, task, stir(model)

    toy.assert_same_gradients_when_recomputed(built)


def test_checkpoint_without_a_newer_option(data_bin):
    cfg, task, model = toy.build(data_bin, "--context-attention", "tree")
    known = OmegaConf.to_container(cfg.model) if OmegaConf.is_config(cfg.model) else vars(cfg.model)
    older = Namespace(**{name: value for name, value in known.items() if name not in ("context_kernel", "tree_merge")})
    again = stir(task.build_model(older, from_checkpoint=True).eval())
    sample = toy.batch_of(task)
    assert torch.equal(logits(again, sample), logits(stir(model), sample))
