"""The structures of ``step.h``, field by field."""

from ctypes import c_int64, c_void_p

from docnmt_fairseq.native.call import Arguments, fields


class Look(Arguments):
    """What hypotheses find among the tokens of their sentence."""

    _fields_ = [
        *fields(c_int64, "threads sentences hypotheses heads dim tokens"),
        *fields(c_void_p, "q"),
        *fields(c_int64, "q_stride"),
        *fields(c_void_p, "k v"),
        *fields(c_int64, "sentence_stride head_stride token_stride"),
        *fields(c_void_p, "seen"),
        *fields(c_int64, "seen_sentence seen_hypothesis"),
        *fields(c_void_p, "out"),
    ]


class Rows(Arguments):
    """Rows of logits."""

    _fields_ = [*fields(c_int64, "threads rows tokens"), *fields(c_void_p, "logits log_sums")]
