"""Features of sentences, e.g. of images, on their way from a data set's files to where a data-bin's are looked for."""

import io
import os
from pathlib import Path

import numpy as np

from docnmt_fairseq.arrays import UNREADABLE
from docnmt_fairseq.corpus.files import atomic_write_bytes, partial_path
from docnmt_fairseq.errors import InputError, first_line


def lay_features(path: Path, target: Path, sentences: int, cut: bool) -> None:
    """Lays a file of features where a task finds it: a link, since features of images are gigabytes.

    Args:
        path: an ``.npy`` with a row or a matrix a sentence.
        target: where it is looked for.
        sentences: that were prepared.
        cut: these are the first ones; their features alone are copied.

    Raises:
        InputError: no such file; features of another number of sentences.
    """
    try:
        features = np.load(path, mmap_mode="r")
    except UNREADABLE as error:
        raise InputError(f"{path}: not a file of features, .npy ({first_line(error)})") from error
    if len(features) < sentences or (len(features) != sentences and not cut):
        raise InputError(
            f"{path}: features of {len(features)} sentences, but {sentences} were prepared: give a row for every "
            "sentence; those that are empty on one side are left out"
        )
    if cut:
        content = io.BytesIO()
        np.save(content, features[:sentences])
        target.unlink(missing_ok=True)  # a link to all features would be followed
        atomic_write_bytes(target, content.getvalue())
        return
    partial = partial_path(target)
    partial.unlink(missing_ok=True)
    partial.symlink_to(path.absolute())
    os.replace(partial, target)
