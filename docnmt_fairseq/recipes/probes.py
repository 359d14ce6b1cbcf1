"""Probes of the context use of trained models: translations with false context, and CXMI."""

from dataclasses import replace
from pathlib import Path

from docnmt_fairseq.files import write_json
from docnmt_fairseq.recipes.dataset import SHUFFLED
from docnmt_fairseq.recipes.models import SEARCH
from docnmt_fairseq.translate.view import DocumentView


def translate(
    data: Path,
    source: Path,
    checkpoint: Path,
    output: Path,
    context: str,
    tokens: int,
    cpu: bool,
    view: DocumentView = DocumentView(),
) -> None:
    """Translates a text as ``docnmt translate`` does, with the search options of the recipes.

    Args:
        data: output of ``docnmt prepare``.
        source: text to translate.
        checkpoint: model.
        output: file to write.
        context: "none" or "shuffled".
        tokens: tokens per batch.
        cpu: do not use a GPU.
        view: document view, without the context.

    Raises:
        InputError: a sentence is too long, or the text is a single document.
    """
    from docnmt_fairseq.search.options import SearchOptions
    from docnmt_fairseq.translate.inputs import input_files
    from docnmt_fairseq.translate.lines import EMPTY_LINES
    from docnmt_fairseq.translate.request import Request
    from docnmt_fairseq.translate.shuffled_context import ShuffledContext
    from docnmt_fairseq.translate.translate_files import ALL, translate_files
    from docnmt_fairseq.translate.translator import DocumentTranslator

    view, search = replace(view, context=None if context == SHUFFLED else context), SearchOptions(**SEARCH)
    translator = DocumentTranslator.from_checkpoint(
        checkpoint, data=data, view=view, search=search, max_tokens=tokens, cpu=cpu
    )
    shown = ShuffledContext(translator) if context == SHUFFLED else translator
    texts = input_files(Request([source], output, force=True, format="text"))
    translate_files(
        texts, shown, EMPTY_LINES[0], lambda sentences: None, group_sentences=ALL if shown != translator else None
    )


def measure_cxmi(
    data: Path,
    source: Path,
    reference: Path,
    checkpoint: Path,
    output: Path,
    sentences: int,
    cpu: bool,
    view: DocumentView = DocumentView(),
) -> None:
    """Writes the report of ``docnmt cxmi --format json``.

    Args:
        data: output of ``docnmt prepare``.
        source, reference: test set.
        checkpoint: model.
        output: file to write.
        sentences: size of the random sample; 0: all sentences.
        cpu: do not use a GPU.
        view: document view.

    Raises:
        InputError: a sentence is too long, or the test set is a single document.
    """
    import torch

    from docnmt_fairseq.corpus.text_codec import TextCodec
    from docnmt_fairseq.evaluation.cxmi import measure, read_test_set
    from docnmt_fairseq.evaluation.cxmi_report import build_report
    from docnmt_fairseq.evaluation.forced_decoding import ForcedDecoder
    from docnmt_fairseq.translate.loading import load_viewing

    ensemble = load_viewing(checkpoint, data=data, view=view)
    if torch.cuda.is_available() and not cpu:
        ensemble.model.cuda()
    test_set = read_test_set(source, reference, ensemble, TextCodec(data))
    measured = measure(test_set, ForcedDecoder(ensemble), sentences)
    about = {"source": str(source), "reference": str(reference), "model": str(checkpoint)}
    write_json(output, build_report(test_set, measured, ensemble.dictionaries[1], about).to_json(), indent=1)
