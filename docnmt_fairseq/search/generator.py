"""Sequence generator of fairseq's commands and validation that searches with :class:`SearchEngine`."""

from typing import Any, Dict, List, Optional

import numpy as np
import torch
from fairseq.data import Dictionary
from fairseq.models import BaseFairseqModel
from fairseq.search import BeamSearch
from fairseq.sequence_generator import SequenceGenerator
from torch import Tensor

from docnmt_fairseq.data.concatenation import Hypothesis
from docnmt_fairseq.search.beams import FREE
from docnmt_fairseq.search.engine import SearchEngine
from docnmt_fairseq.search.options import SearchOptions

UNSUPPORTED = ("match_source_len", "no_repeat_ngram_size", "lm_model", "tokens_to_suppress", "eos", "max_len")


class EngineGenerator(SequenceGenerator):
    """fairseq's generator, with the search engine for beam search; hypotheses and their order are the same.

    fairseq's own search remains for sampling, diverse, constrained and length-matching search, for blocked n-grams,
    suppressed tokens and language models, and for models without incremental decoder.

    Args:
        models: ensemble.
        dictionary: target dictionary.
        options: see fairseq's class.

    Attributes:
        uses_engine: whether the engine supports models and options.
    """

    def __init__(self, models: List[BaseFairseqModel], dictionary: Dictionary, **options: Any):
        super().__init__(models, dictionary, **options)
        self.uses_engine = (
            type(self.search) is BeamSearch
            and not any(options.get(name) for name in UNSUPPORTED)
            and self.max_len_b > 0
            and self.model.has_incremental_states()
        )
        self.engine: Optional[SearchEngine] = None

    def _current_engine(self) -> SearchEngine:
        """Search engine with the current parameters; it is kept if they cannot change any more."""
        if self.engine is not None:
            return self.engine
        models = list(self.model.models)
        options = SearchOptions(
            beam=self.beam_size,
            nbest=self.beam_size,
            lenpen=self.len_penalty,
            unkpen=self.unk_penalty,
            min_len=self.min_len,
            max_len_a=self.max_len_a,
            max_len_b=self.max_len_b,
            temperature=self.temperature,
            unnormalized=not self.normalize_scores,
        )
        trained = all(model._is_generation_fast for model in models)  # set by prepare_for_inference_
        engine = SearchEngine(models, self.tgt_dict, options, fixed=trained, fairseq_ties=True)
        if trained:
            self.engine = engine
        return engine

    @torch.no_grad()
    def generate(
        self,
        models: List[BaseFairseqModel],
        sample: Dict[str, Any],
        prefix_tokens: Optional[Tensor] = None,
        **kwargs: Any,
    ) -> List[List[Hypothesis]]:
        """Hypotheses of each sentence, best first, on the CPU.

        Args:
            models: unused, for fairseq's callers.
            sample: batch; sentences that are already encoded (sequential decoding) are decoded by fairseq's search.
            prefix_tokens: [S, ·] forced first tokens; padding: not forced.
            kwargs: other arguments of fairseq's search.
        """
        net_input = sample["net_input"]
        if not self.uses_engine or "encoded" in net_input or any(value is not None for value in kwargs.values()):
            return super().generate(models, sample, prefix_tokens=prefix_tokens, **kwargs)
        rows, width = net_input["src_tokens"].shape[:2]
        batch = {"net_input": net_input, "id": torch.arange(rows), "longest_source": width}
        if prefix_tokens is not None:
            prefixes = prefix_tokens.cpu().numpy()
            batch["prefixes"] = np.where(prefixes == self.pad, FREE, prefixes)
        found: List[List[Hypothesis]] = [[] for _ in range(rows)]
        for sentence, hypotheses in self._current_engine().run(iter([batch])):
            for hypothesis in hypotheses:
                del hypothesis["made_by"]
            found[sentence.row] = hypotheses
        return found
