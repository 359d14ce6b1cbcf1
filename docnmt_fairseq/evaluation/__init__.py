"""What was translated, measured: scores, words that need context, reports and pictures.

- What is scored: ``generate_log`` (what fairseq-generate printed, in its documents), ``texts`` (test sets and
  translations), ``postprocess`` (prepared text made plain again).
- ``metrics``, a metric a file; ``significance``, a way of drawing a file; ``bootstrap``, what they share with others.
- ``docnmt score``: ``score_report``, ``score_tables``; ``docnmt postprocess`` and recipes: ``scores``, of one text.
- ``docnmt score-synth``: ``phenomena``, ``synth_report``, ``plots``.
- ``docnmt contrast``: ``contrast``, a format of test sets a file; ``docnmt cxmi``: ``context_use``. Both ask models by
  ``forced_decoding``, over batches of ``samples``.
- ``tables``: columns of text or Markdown, for all reports.
"""
