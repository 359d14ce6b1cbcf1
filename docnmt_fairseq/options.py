"""How options of tasks, models, mechanisms and criterions are declared: once, beside what they steer.

A field of a dataclass is an option; its name is the flag's (``context_top_t`` is ``--context-top-t``), the YAML key's
and the one in the code. What :func:`option` is given beside the default makes the checks, the aliases and the reference
page.
"""

import logging
from dataclasses import MISSING, Field, dataclass, field, fields, make_dataclass
from enum import Enum
from typing import Any, Collection, Iterator, List, Optional, Protocol, Sequence, Tuple, Type, TypeVar

from docnmt_fairseq.errors import InputError, refuse

logger = logging.getLogger(__name__)
T = TypeVar("T")


class Names(Protocol):
    """What knows the allowed names: a :class:`~docnmt_fairseq.registry.Registry`, or :class:`Choices`."""

    def __contains__(self, name: object) -> bool:
        """Whether a name is allowed, perhaps as a former one."""

    def names(self) -> List[str]:
        """The allowed names, without former ones."""

    def current_name(self, name: str) -> str:
        """The name of today for a former one; any other as it is."""


class Choices(Tuple[str, ...]):
    """A fixed set of names."""

    def names(self) -> List[str]:
        """The allowed names."""
        return list(self)

    def current_name(self, name: str) -> str:
        """The name itself."""
        return name


def option(
    default: Any,
    help_text: str,
    *,
    names: Optional[Names] = None,
    also: Sequence[str] = (),
    minimum: Optional[float] = None,
    maximum: Optional[float] = None,
    old: Optional[str] = None,
    **metadata: object,
) -> Any:
    """A field of a dataclass of options.

    Args:
        default: its value where it is not given; a type such as ``list`` makes a new one each time.
        help_text: what it means, with the unit.
        names: whose names it may take; they are added to the help.
        also: more allowed names, e.g. ``none``.
        minimum, maximum: the least and the greatest allowed number.
        old: a former name, which is still understood.
        metadata: fairseq's, e.g. ``argparse_alias``; ``by_line``: rows of the file count lines of the test set.
    """
    own = {"help": help_text, "names": names, "also": tuple(also), "old": old, **metadata}
    own.update(minimum=minimum, maximum=maximum)
    if isinstance(default, type):
        return field(default_factory=default, metadata=own)
    return field(default=default, metadata=own)


def flag_of(name: str) -> str:
    """The flag of an option."""
    return "--" + name.replace("_", "-")


def default_of(known: "Field[Any]") -> Any:
    """The default of a field."""
    return known.default if known.default_factory is MISSING else known.default_factory()


def allowed_names(known: "Field[Any]") -> List[str]:
    """The names that an option may take; none where it takes others than names."""
    names = known.metadata.get("names")
    return [] if names is None else [*known.metadata["also"], *names.names()]


def help_of(known: "Field[Any]") -> str:
    """The help text of an option with its allowed names, as far as the type does not say them."""
    text, names = known.metadata.get("help", ""), allowed_names(known)
    return text if not names or isinstance(known.metadata["names"], Choices) else f"{text}: {', '.join(names)}"


def plain(value: Any) -> Any:
    """An option's value as mechanisms take it: a name instead of an enumeration's member, a list of omegaconf's."""
    if isinstance(value, Enum):
        return value.value
    return list(value) if isinstance(value, Sequence) and not isinstance(value, (str, list, tuple)) else value


def shown(value: Any) -> str:
    """A value as messages show it."""
    return f"{value:g}" if isinstance(value, float) else str(value)


def options_of(cfg: Any, cls: Type[T]) -> T:
    """The options of one component out of a configuration that holds those of all.

    Args:
        cfg: has an attribute for each option.
        cls: the component's dataclass of options.

    Raises:
        InputError: the configuration knows none of that name.
    """
    for known in fields(cls):  # type: ignore[arg-type]
        if not hasattr(cfg, known.name):
            raise InputError(
                f"{flag_of(known.name)}: the models do not know it, as {cls.__qualname__} was made after them; import "
                "what registers it before docnmt_fairseq.register()"
            )
    return cls(**{known.name: plain(getattr(cfg, known.name)) for known in fields(cls)})  # type: ignore[arg-type]


def changed(cfg: Any, cls: type, names: Optional[Collection[str]] = None) -> Iterator[str]:
    """The options that do not have their defaults, each as the command line has it.

    Args:
        cfg: has an attribute for each option.
        cls: a dataclass of options.
        names: which of them are asked about; None: all.
    """
    for known in fields(cls):
        value = plain(getattr(cfg, known.name))
        if (names is None or known.name in names) and value != default_of(known):
            yield f"{flag_of(known.name)} {shown(value)}"


def problems_of(cfg: Any, cls: type, only: Optional[Collection[str]] = None) -> Iterator[str]:
    """What is wrong with the values of a dataclass's options by itself, each by its flag.

    Args:
        cfg: has an attribute for each option.
        cls: a dataclass of options.
        only: which of them are asked about; None: all.
    """
    asked = (known for known in fields(cls) if only is None or known.name in only)
    given = [(known, plain(getattr(cfg, known.name))) for known in asked]
    given = [(known, value) for known, value in given if value is not None]
    for known, value in given:
        names = known.metadata.get("names")
        if names is not None and value not in names and value not in known.metadata["also"]:
            yield f"{flag_of(known.name)} {value}: must be one of {', '.join(allowed_names(known))}"
    for known, value in given:
        least = known.metadata.get("minimum")
        if least is not None and not value >= least:  # nor is nan
            yield f"{flag_of(known.name)} {value}: must {'not be negative' if least == 0 else f'be at least {least:g}'}"
        most = known.metadata.get("maximum")
        if most is not None and not value <= most:
            yield f"{flag_of(known.name)} {value}: must be at most {most:g}"


@dataclass(frozen=True)
class CheckedOptions:
    """Options of one part, fields made by :func:`option`, that look at themselves when they are made.

    Raises:
        InputError: values that are not allowed, all of them.
    """

    def __post_init__(self) -> None:
        refuse(problems_of(self, type(self)))


def same_declaration(one: "Field[Any]", other: "Field[Any]") -> bool:
    """Whether two fields of one name declare the same option."""
    return (one.type, one.default, one.metadata) == (other.type, other.default, other.metadata)


def with_old_names(cls: Type[T]) -> Type[T]:
    """The dataclass with one field more for each option that has a former name; see :func:`take_old_names`."""
    added = []
    for known in fields(cls):  # type: ignore[arg-type]
        old, is_switch = known.metadata.get("old"), known.type is bool
        if old is not None:
            metadata = {"help": f"former name of {flag_of(known.name)}"}
            unset = field(default=False if is_switch else None, metadata=metadata)
            added.append((old, bool if is_switch else Optional[known.type], unset))
    grown = make_dataclass(cls.__name__, added, bases=(cls,))
    grown.__module__, grown.__qualname__, grown.__doc__ = cls.__module__, cls.__qualname__, cls.__doc__
    return grown


def take_old_names(cfg: Any, cls: type) -> None:
    """Moves what a configuration has under former names of options, and of their values, to those of today."""
    for known in fields(cls):
        old, names = known.metadata.get("old"), known.metadata.get("names")
        value = None if old is None else getattr(cfg, old, None)
        if old is not None and value is not None and value is not False:
            logger.info(f"{flag_of(old)} is now {flag_of(known.name)}")
            setattr(cfg, known.name, value)
            setattr(cfg, old, False if known.type is bool else None)
        value = plain(getattr(cfg, known.name, None))
        if names is not None and value is not None and names.current_name(value) != value:
            logger.info(f"{flag_of(known.name)} {value} is now {names.current_name(value)}")
            setattr(cfg, known.name, names.current_name(value))
