"""What is wrong with an option of the YAML is named with its group, and so is the one that may be meant."""

import pytest
from fairseq.dataclass import utils
from fairseq.models.transformer import TransformerConfig
from omegaconf import OmegaConf

from docnmt_fairseq import compat  # noqa: F401  (changes fairseq)
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.tasks.document_options import DocumentTranslationConfig


def merged(**given):
    parent = OmegaConf.create({"task": {"_name": "document_translation", **given}})
    return utils.merge_with_parent(DocumentTranslationConfig(), parent.task)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"contxt": "none"}, r"task\.contxt: document_translation has no such option; is it context\?"),
        ({"contxt": {"of": "none"}}, r"task\.contxt: document_translation has no such option; is it context\?"),
        ({"qqq": 1}, r"task\.qqq: document_translation has no such option"),
        ({"context": "many"}, r"task\.context: Invalid value 'many', expected one of \[document, none\]"),
        (
            {"max_document_sentences": "x"},
            r"task\.max_document_sentences: Value 'x' .* could not be converted to Int.*",
        ),
    ],
    ids=str,
)
def test_what_is_wrong_is_named(given, told):
    with pytest.raises(InputError) as error:
        merged(**given)
    assert error.match(f"^{told}$") and "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (
            {"encoder": {"embd_dim": 8}},
            r"model\.encoder\.embd_dim: transformer has no such option; is it encoder\.embed_dim\?",
        ),
        ({"encoder": {"embed_dim": "x"}}, r"model\.encoder\.embed_dim: Value 'x' .*"),
        ({"encoder": 3}, r"model: Merge error: int is not a subclass of EncDecBaseConfig.*"),
    ],
    ids=str,
)
def test_options_within_a_group_are_named_with_it(given, told):
    parent = OmegaConf.create({"model": {"_name": "transformer", **given}})
    with pytest.raises(InputError, match=f"^{told}$"):
        utils.merge_with_parent(TransformerConfig(), parent.model)


def test_what_is_given_is_kept_and_the_rest_is_as_by_default():
    found = merged(max_document_sentences=7)
    assert found.max_document_sentences == 7 and found.source_lang is None
