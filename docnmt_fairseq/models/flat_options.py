"""The options of a model and of all its parts as one flat dataclass, as fairseq's command line and hydra want them.

(Subclassing a nested configuration crashes fairseq's command line, or has no effect.)
"""

from dataclasses import MISSING, Field, field, fields, make_dataclass
from typing import Any, Dict, Iterable, Optional, Tuple, Type

from fairseq.dataclass import ChoiceEnum, FairseqDataclass

from docnmt_fairseq.options import Choices, allowed_names, help_of, same_declaration


def flat_options(name: str, module: str, parts: Iterable[type]) -> Type[FairseqDataclass]:
    """A dataclass with every option of the parts, once each.

    Args:
        name: of the dataclass.
        module: that it is to be found in, under that name.
        parts: dataclasses of options; several may have an option of the same ancestor.

    Raises:
        ValueError: two parts declare different options of one name.
    """
    known: Dict[str, Tuple[type, Field[Any]]] = {}
    for part in parts:
        for own in fields(part):
            first = known.setdefault(own.name, (part, own))[1]
            if not same_declaration(first, own):
                raise ValueError(f"{known[own.name][0].__qualname__} and {part.__qualname__} both declare {own.name}")
    made = make_dataclass(name, [_flat(own) for _, own in known.values()], bases=(FairseqDataclass,))
    made.__module__ = module
    return made


def _flat(own: "Field[Any]") -> Tuple[str, Any, Any]:
    """Name, type and field as fairseq wants them: a fixed set of names as an enumeration."""
    metadata = {key: value for key, value in own.metadata.items() if value is not None}
    if metadata.get("help"):
        metadata["help"] = help_of(own)
    kind: Any = own.type
    if isinstance(own.metadata.get("names"), Choices):
        choices = ChoiceEnum(allowed_names(own))
        kind = choices if own.type is str else Optional[choices]
    if own.default_factory is not MISSING:
        return own.name, kind, field(default_factory=own.default_factory, metadata=metadata)
    return own.name, kind, field(default=own.default, metadata=metadata)
