"""Translations of test sets with trained models, with true and false context, and CXMI."""

from dataclasses import replace
from pathlib import Path
from typing import Optional

from docnmt_fairseq.files import write_json
from docnmt_fairseq.options import flag_of
from docnmt_fairseq.recipes.dataset import SHUFFLED
from docnmt_fairseq.recipes.models import SEARCH, Model
from docnmt_fairseq.recipes.processes import Machine, fairseq, run_to
from docnmt_fairseq.recipes.training import BEST
from docnmt_fairseq.translate.view import DocumentView


def generate(
    data: Path,
    split: str,
    folder: Path,
    output: Path,
    model: Model,
    tokens: int,
    joins: Optional[str],
    machine: Machine,
    view: DocumentView = DocumentView(),
) -> None:
    """Writes the output of fairseq-generate for a test set, with the checkpoint of the lowest validation loss.

    Args:
        data, split: data-bin, and "test", "test1", ….
        folder: folder of the checkpoints.
        output: file to write.
        model, tokens, view: trained model, tokens per batch and document view.
        joins: subwords that fairseq joins, as ``--remove-bpe``; None: they are kept.
        machine: device; a single process is used.
    """
    command = [*fairseq("generate"), str(data), "--user-dir", str(machine.user_dir), "--task", model.task, "--path"]
    command += [str(folder / BEST), "--gen-subset", split, "--max-tokens", str(tokens)]
    command += [word for name, value in {**SEARCH, **view.given}.items() for word in (flag_of(name), str(value))]
    command += [] if joins is None else ["--remove-bpe", joins]
    command += replace(machine, processes=1).options()
    run_to(command, output)


def translate_with_context(
    data: Path, source: Path, checkpoint: Path, output: Path, context: str, tokens: int, cpu: bool, view: DocumentView
) -> None:
    """Translates a text as ``docnmt translate --context`` does, with the search options of the recipes."""
    from docnmt_fairseq.search.options import SearchOptions
    from docnmt_fairseq.translate.inputs import Request, input_files
    from docnmt_fairseq.translate.lines import EMPTY_LINES
    from docnmt_fairseq.translate.shuffled_context import ShuffledContext
    from docnmt_fairseq.translate.translate_files import ALL, translate_files
    from docnmt_fairseq.translate.translator import DocumentTranslator

    shuffled = context == SHUFFLED
    view, search = replace(view, context=None if shuffled else context), SearchOptions(**SEARCH)
    translator = DocumentTranslator.from_checkpoint(
        checkpoint, data=data, view=view, search=search, max_tokens=tokens, cpu=cpu
    )
    shown = ShuffledContext(translator) if shuffled else translator
    texts = input_files(Request([source], output, force=True, format="text"))
    translate_files(texts, shown, EMPTY_LINES[0], lambda sentences: None, group_sentences=ALL if shuffled else None)


def measure_cxmi(
    data: Path,
    source: Path,
    reference: Path,
    checkpoint: Path,
    output: Path,
    sentences: int,
    cpu: bool,
    view: DocumentView,
) -> None:
    """Writes the report of ``docnmt cxmi --format json`` for a random sample of sentences, 0 for all."""
    import torch

    from docnmt_fairseq.corpus.pipeline import TextCodec
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
