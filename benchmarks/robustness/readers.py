"""Files of every form that the package reads, by name."""

from pathlib import Path
from typing import Callable, Dict

from benchmarks.robustness.corpus_forms import CORPORA
from benchmarks.robustness.prepared_forms import PREPARED
from benchmarks.robustness.subjects import Subject

READERS: Dict[str, Callable[[Path], Subject]] = {**CORPORA, **PREPARED}
