"""Comparison of a model of Hugging Face's transformers with its import or export."""

import torch

from docnmt_fairseq.checkpoints import load_ensemble
from docnmt_fairseq.corpus.pipeline import TextCodec, token_ids
from docnmt_fairseq.search.options import SearchOptions
from docnmt_fairseq.translate.translator import DocumentTranslator
from tests.support.pretrained import ENGLISH, GERMAN


class Pair:
    """Model of Hugging Face's with its tokenizer, and the imported model in a folder.

    Args:
        start: id of the decoder's first token.
        forced: id of the language token at the start of translations.
    """

    def __init__(self, model, tokenizer, folder, start, forced=None):
        self.model, self.tokenizer, self.folder, self.start, self.forced = model, tokenizer, folder, start, forced
        self.ensemble = load_ensemble(folder / "checkpoint.pt", data=folder)
        self.codec = TextCodec.of_output(folder)

    def tokens(self, side, lines):
        """Returns our token ids of sentences."""
        return token_ids(self.codec.encode(side, lines), self.ensemble.dictionaries[side])

    def numbers(self, side, lines):
        """Returns Hugging Face's token ids of sentences."""
        given = {"text" if side == 0 else "text_target": lines}
        return self.tokenizer(**given).input_ids

    def symbols(self, side, lines):
        """Returns the symbols of both."""
        dictionary = self.ensemble.dictionaries[side]
        ours = [[dictionary[int(token)] for token in tokens] for tokens in self.tokens(side, lines)]
        by_number = {number: symbol for symbol, number in self.ids(side).items()}
        return ours, [[by_number[number] for number in numbers] for numbers in self.numbers(side, lines)]

    def ids(self, side):
        """Returns Hugging Face's ids of all symbols."""
        if getattr(self.tokenizer, "separate_vocabs", False) and side == 1:
            return self.tokenizer.target_encoder
        if not hasattr(self.tokenizer, "encoder"):
            return self.tokenizer.get_vocab()
        return {**self.tokenizer.encoder, **getattr(self.tokenizer, "lang_token_to_id", {})}

    @torch.no_grad()
    def encoder_states(self, line):
        """Returns the states [m, d] of both."""
        (tokens,), (numbers,) = self.tokens(0, [line]), self.numbers(0, [line])
        ours = self.ensemble.model.encoder(tokens[None])["encoder_out"][0][:, 0]
        theirs = self.model.get_encoder()(torch.tensor([numbers])).last_hidden_state[0]
        return ours, theirs

    @torch.no_grad()
    def log_probabilities(self, source, target):
        """Returns the log-probabilities [m_t, V] of both under teacher forcing."""
        (tokens,), (wanted,) = self.tokens(0, [source]), self.tokens(1, [target])
        dictionary = self.ensemble.dictionaries[1]
        previous = torch.cat([torch.tensor([dictionary.eos()]), wanted[:-1]])[None]
        ours = self.ensemble.model(tokens[None], None, previous)[0][0].log_softmax(-1)
        labels = self.numbers(1, [target])[0]
        inputs = torch.tensor([[self.start, *labels[:-1]]])
        numbers = torch.tensor(self.numbers(0, [source]))
        logits = self.model(numbers, decoder_input_ids=inputs, use_cache=False).logits[0]  # FSMT masks only without
        return ours, logits.log_softmax(-1)

    def ordered(self, log_probs):
        """Returns Hugging Face's log-probabilities in the order of our dictionary, and the common symbols."""
        dictionary, ids = self.ensemble.dictionaries[1], self.ids(1)
        there = [number for number, symbol in enumerate(dictionary.symbols) if symbol in ids]
        return log_probs[:, [ids[dictionary[number]] for number in there]], there

    def hypotheses(self, lines, limit=40, beam=4, length_penalty=0.0):
        """Returns the n best (text, score) of both for each sentence whose hypotheses end before the limit.

        Without unknown words, which Hugging Face does not print.
        """
        search = SearchOptions(beam=beam, nbest=beam, max_len_b=limit, lenpen=length_penalty)
        translator = DocumentTranslator.from_checkpoint(self.folder / "checkpoint.pt", search=search, cpu=True)
        ours = [
            [(one.text.replace("<unk>", ""), one.score) for one in line.translations]
            for line in translator.translate_lines([lines])[0]
        ]
        batch = self.tokenizer(lines, return_tensors="pt", padding=True)
        found = self.model.generate(
            **batch, num_beams=beam, num_return_sequences=beam, length_penalty=length_penalty, early_stopping=True,
            min_new_tokens=1,  # as fairseq, which has no empty translations
            max_length=limit, forced_bos_token_id=self.forced, return_dict_in_generate=True, output_scores=True,
        )  # fmt: skip
        theirs, whole = [], []
        texts = [self.decoded(sequence) for sequence in found.sequences]
        for first in range(0, len(texts), beam):
            rows = slice(first, first + beam)
            theirs.append(list(zip(texts[rows], found.sequences_scores[rows].tolist())))
            lengths = (found.sequences[rows] != self.tokenizer.pad_token_id).sum(1)
            whole.append(bool((lengths < limit - 2).all()))
        if self.forced is not None:  # its probability is 1 for Hugging Face
            ours = [[(text, score - self._of_token(line)) for text, score in of] for of, line in zip(ours, lines)]
        return [(a, b) for a, b, ended in zip(ours, theirs, whole) if ended]

    def _of_token(self, line):
        """Returns the log-probability of the target's language token."""
        number = self.ensemble.task.language_tokens[1]
        return float(self.log_probabilities(line, GERMAN[0])[0][0, number])

    def decoded(self, sequence):
        """Returns the text of a translation."""
        options = {"use_source_tokenizer": False} if "Marian" in type(self.tokenizer).__name__ else {}
        return self.tokenizer.decode(sequence, skip_special_tokens=True, **options).strip()


def assert_same_encoder_states(pair, lines=ENGLISH):
    """Asserts equal encoder states."""
    for line in lines:
        ours, theirs = pair.encoder_states(line)
        torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=1e-5)


def assert_same_log_probabilities(pair, sources=ENGLISH, targets=GERMAN, added=0):
    """Asserts equal probabilities; ``added`` symbols are only in our vocabulary and improbable."""
    for source, target in zip(sources, targets):
        ours, theirs = pair.log_probabilities(source, target)
        theirs, there = pair.ordered(theirs)
        torch.testing.assert_close(ours[:, there], theirs, atol=1e-5, rtol=1e-5)
        if added:
            alone = set(range(ours.size(1))) - set(there)
            assert len(alone) == added and ours[:, sorted(alone)].max() < -80


def assert_same_translations(compared):
    """Asserts equal best translations, and equal scores of common hypotheses.

    The last of n best may differ: the searches treat hypotheses that end in the last step differently. Two hypotheses
    have the same text if they divide it into other subwords.
    """
    assert len(compared) > 3
    common = 0
    for ours, theirs in compared:
        assert ours[0][0] == theirs[0][0]
        for text, score in ours:
            found = [other for same, other in theirs if same == text]
            if found:
                assert min(abs(score - other) for other in found) < 2e-5
                common += 1
    assert common > 3 * len(compared)
