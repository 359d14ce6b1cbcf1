"""Declaration of options: dataclass fields that define the flag, the YAML key, the checks and the reference page.

The field ``context_top_t`` is the flag ``--context-top-t`` and the YAML key ``context_top_t``. :func:`option` creates
such a field, next to the mechanism that reads it.
"""

from dataclasses import MISSING, Field, dataclass, field, fields
from enum import Enum
from typing import Any, Collection, Iterator, List, Optional, Protocol, Sequence, Tuple, Type, TypeVar

from docnmt_fairseq.errors import refuse

T = TypeVar("T")


class Names(Protocol):
    """Set of allowed names: a :class:`~docnmt_fairseq.registry.Registry` or :class:`Choices`."""

    def __contains__(self, name: object) -> bool:
        """Returns whether the name is allowed."""

    def names(self) -> List[str]:
        """Returns the allowed names."""


class Choices(Tuple[str, ...]):
    """Fixed set of names."""

    def names(self) -> List[str]:
        """Returns the allowed names."""
        return list(self)


def option(
    default: Any,
    help_text: str,
    *,
    names: Optional[Names] = None,
    also: Sequence[str] = (),
    minimum: Optional[float] = None,
    maximum: Optional[float] = None,
    **metadata: object,
) -> Any:
    """Field of a dataclass of options.

    Args:
        default: default value; a type such as ``list`` creates a new instance each time.
        help_text: meaning of the option, with its unit.
        names: allowed names; the help text lists them.
        also: additional allowed names, e.g. ``none``.
        minimum, maximum: allowed range of a number.
        metadata: keys that fairseq reads, e.g. ``argparse_alias``; ``by_line``: the value is a file with one row per
            line of the test set.
    """
    own = {"help": help_text, "names": names, "also": tuple(also), "minimum": minimum, "maximum": maximum, **metadata}
    if isinstance(default, type):
        return field(default_factory=default, metadata=own)
    return field(default=default, metadata=own)


def flag_of(name: str) -> str:
    """Command-line flag of an option."""
    return "--" + name.replace("_", "-")


def default_of(known: "Field[Any]") -> Any:
    """Default value of a field."""
    return known.default if known.default_factory is MISSING else known.default_factory()


def allowed_names(known: "Field[Any]") -> List[str]:
    """Names that an option accepts; empty if it does not take names."""
    names = known.metadata.get("names")
    return [] if names is None else [*known.metadata["also"], *names.names()]


def help_of(known: "Field[Any]") -> str:
    """Help text of an option; includes the allowed names unless argparse shows them as choices."""
    text, names = known.metadata.get("help", ""), allowed_names(known)
    return text if not names or isinstance(known.metadata["names"], Choices) else f"{text}: {', '.join(names)}"


def plain(value: Any) -> Any:
    """Plain Python value of an option: the name of an enumeration member, a list instead of an omegaconf list."""
    if isinstance(value, Enum):
        return value.value
    return list(value) if isinstance(value, Sequence) and not isinstance(value, (str, list, tuple)) else value


def options_of(cfg: Any, cls: Type[T]) -> T:
    """Options of one component, taken from a configuration with the options of all components.

    Args:
        cfg: object with an attribute for each option.
        cls: dataclass of the component's options.
    """
    return cls(**{known.name: plain(getattr(cfg, known.name)) for known in fields(cls)})  # type: ignore[arg-type]


def problems_of(cfg: Any, cls: type, skip: Collection[str] = ()) -> Iterator[str]:
    """Messages about option values outside their allowed names or range.

    Args:
        cfg: object with an attribute for each option.
        cls: dataclass of options.
        skip: options that are not checked.
    """
    for known in fields(cls):
        names, minimum, maximum = limits = [known.metadata.get(key) for key in ("names", "minimum", "maximum")]
        if known.name in skip or limits == [None, None, None]:
            continue  # the value may refer to a part of the configuration that is missing
        value = plain(getattr(cfg, known.name))
        if value is None:
            continue
        if names is not None and value not in names and value not in known.metadata["also"]:
            yield f"{flag_of(known.name)} {value}: must be one of {', '.join(allowed_names(known))}"
        if minimum is not None and not value >= minimum:  # also refuses nan
            expected = "not be negative" if minimum == 0 else f"be at least {minimum:g}"
            yield f"{flag_of(known.name)} {value}: must {expected}"
        if maximum is not None and not value <= maximum:
            yield f"{flag_of(known.name)} {value}: must be at most {maximum:g}"


@dataclass(frozen=True)
class CheckedOptions:
    """Base class of dataclasses of options (see :func:`option`) that are checked on construction.

    Raises:
        InputError: values outside their allowed names or range; lists all of them.
    """

    def __post_init__(self) -> None:
        refuse(problems_of(self, type(self)))
