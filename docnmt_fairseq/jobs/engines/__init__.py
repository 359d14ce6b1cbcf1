"""Engines by name, a class each in a file of its own."""

from docnmt_fairseq.jobs.engines.base import ENGINES, Engine, EngineOptions
from docnmt_fairseq.registry import import_folder

__all__ = ["ENGINES", "Engine", "EngineOptions"]

import_folder(__name__, __path__)
