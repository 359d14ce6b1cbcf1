"""Evaluation of translations and of models.

- Input: ``texts`` (test sets and translations, output of fairseq-generate), ``postprocess`` (prepared text to plain
  text, scores of one text).
- ``docnmt score``: ``score_report`` with ``metrics`` (one file per metric), ``significance`` and ``examples``;
  ``synth_report`` and ``plots`` for artificial corpora.
- ``docnmt contrast``: ``contrast`` (one file per format); ``docnmt cxmi``: ``cxmi`` and ``cxmi_report``. Both use
  ``forced_decoding`` on ``text_batches``.
- ``tables``: rendering of all reports as text or Markdown.
"""
