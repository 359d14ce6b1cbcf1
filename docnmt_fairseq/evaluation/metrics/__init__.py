"""Metrics by name, one file per metric or family of metrics."""

from docnmt_fairseq.evaluation.metrics.base import METRICS, Metric, MetricOptions
from docnmt_fairseq.registry import import_folder

__all__ = ["METRICS", "Metric", "MetricOptions"]

import_folder(__name__, __path__)
