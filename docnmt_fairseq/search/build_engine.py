"""Construction of the search engine for models."""

from typing import List, Optional, Sequence

from fairseq.data import Dictionary
from fairseq.models import BaseFairseqModel

from docnmt_fairseq.layers.packed_linear import FLOAT32, pack_linears
from docnmt_fairseq.models.transformer.model import DocumentTransformer
from docnmt_fairseq.models.transformer.stock import of_stock
from docnmt_fairseq.search.candidates import Symbols
from docnmt_fairseq.search.engine import SearchEngine
from docnmt_fairseq.search.incremental_steps import IncrementalSteps
from docnmt_fairseq.search.options import SearchOptions
from docnmt_fairseq.search.steps import EnsembleSteps, StepDecoder
from docnmt_fairseq.search.transformer_steps import TransformerSteps

# Hypotheses decoded in parallel: enough for fast matrix products, few enough for the caches.
ON_CPU, ON_GPU = 256, 4096


def search_engine(
    models: List[BaseFairseqModel],
    dictionary: Dictionary,
    options: SearchOptions,
    hypotheses: Optional[int] = None,
    precision: str = FLOAT32,
    begin: Sequence[int] = (),
) -> SearchEngine:
    """Returns the search engine of a model or an ensemble; on a CPU the linear layers of the models are packed.

    Args:
        models: models in evaluation mode, on their device.
        dictionary: target dictionary.
        options: search options.
        hypotheses: maximum number of hypotheses decoded in parallel; None: by device.
        precision: precision of linear layers on a CPU, see :mod:`docnmt_fairseq.layers.packed_linear`.
        begin: forced first tokens of sentences without a prefix.

    Raises:
        InputError: options out of range.
    """
    options.check()
    device = next(models[0].parameters()).device
    beam = min(options.beam, len(dictionary) - 1)  # as in fairseq, without padding
    decoders: List[StepDecoder] = []
    for model in models:
        model = of_stock(model) or model
        pack_linears(model, precision)
        if isinstance(model, DocumentTransformer):
            decoders.append(TransformerSteps(model, beam, options.temperature, device, precision))
        else:
            decoders.append(IncrementalSteps(model, beam, options.temperature, device))
    most = hypotheses or (ON_CPU if device.type == "cpu" else ON_GPU)
    return SearchEngine(
        decoders[0] if len(decoders) == 1 else EnsembleSteps(decoders),
        options,
        Symbols(dictionary.pad(), dictionary.eos(), dictionary.unk()),
        beam,
        min(model.max_decoder_positions() for model in models),
        max(1, most // beam),
        device,
        begin,
    )
