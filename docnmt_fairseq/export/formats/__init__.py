"""Formats to export by name, a class each in a file of its own."""

from docnmt_fairseq.export.formats.base import EXPORT_FORMATS, ExportFormat
from docnmt_fairseq.registry import import_folder

__all__ = ["EXPORT_FORMATS", "ExportFormat"]

import_folder(__name__, __path__)
