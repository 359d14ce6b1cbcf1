"""The structures of ``api.h``, field by field."""

from ctypes import c_double, c_int64, c_uint64, c_void_p

import torch
from torch import Tensor

from docnmt_fairseq.native.call import Arguments, fields

DIM_MULTIPLE = 16


class Call(Arguments):
    """What every call says."""

    _fields_ = fields(c_int64, "is_double threads heads dim")

    @classmethod
    def of(cls, q: Tensor) -> "Call":
        """The call for q [N, H, dim]."""
        return cls(is_double=q.dtype == torch.double, threads=torch.get_num_threads(), heads=q.size(1), dim=q.size(2))


class Choice(Arguments):
    """KeepTopT of flat relevance."""

    _fields_ = [
        ("call", Call),
        *fields(c_void_p, "q k"),
        *fields(c_int64, "documents places"),
        *fields(c_void_p, "token tokens sentence sentences kept chosen"),
    ]


class TreeChoice(Arguments):
    """The walk of sentence trees."""

    _fields_ = [
        ("call", Call),
        *fields(c_void_p, "q keys"),
        *fields(c_int64, "documents places"),
        *fields(c_void_p, "token tokens kept first counts chosen"),
    ]


class Selection(Arguments):
    """The chosen sentences of M tokens."""

    _fields_ = [*fields(c_int64, "tokens places rows"), *fields(c_void_p, "items sentence")]

    @classmethod
    def of(cls, items: Tensor, sentence: Tensor, rows: int) -> "Selection":
        """The selection of ``items`` [M], ``sentence`` [M, H, t], among so many sentences."""
        return cls(tokens=len(items), places=sentence.size(2), rows=rows, items=items, sentence=sentence)


class Scores(Arguments):
    """Relevance of the chosen."""

    _fields_ = [
        ("call", Call),
        ("selection", Selection),
        *fields(c_void_p, "q k"),
        ("scale", c_double),
        *fields(c_void_p, "scores grad_scores grad_q grad_k"),
    ]


class Attention(Arguments):
    """Attention to the tokens of the chosen."""

    _fields_ = [
        ("call", Call),
        ("selection", Selection),
        *fields(c_void_p, "q k v scores offsets"),
        *fields(c_double, "scale dropout"),
        ("seed", c_uint64),
        *fields(c_void_p, "out log_sum grad_out grad_q grad_k grad_v grad_scores"),
    ]
