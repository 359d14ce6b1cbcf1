"""Tables of options, of what is registered and of commands, as Markdown, from the package itself.

A page asks for one by a comment that is its whole line. The next line, in *(…)*, is shown only where the file itself is
read, e.g. in an editor, and says where the same is found:

    <!-- options: MODULE.CLASS -->        all options of a dataclass
    <!-- own options: MODULE.CLASS -->    those that it declares itself
    <!-- options of: MODULE.REGISTRY -->  those of everything registered there, each with who has it
    <!-- names: MODULE.REGISTRY -->       what is registered there
    <!-- command: NAME -->                what ``docnmt NAME --help`` says
"""

import importlib
import re
from dataclasses import Field, fields, is_dataclass
from enum import Enum
from typing import Any, Callable, Dict, Iterable, List, Tuple, get_args

from docnmt_fairseq.options import allowed_names, default_of, flag_of
from docnmt_fairseq.registry import Registry

DIRECTIVE = re.compile(
    r"^<!-- (options|own options|options of|names|command): (\S+) -->(?:\n\*\(.*\)\*)?$", re.MULTILINE
)
CODE = re.compile(r"(`[^`]*`)")
ROLE = re.compile(r":\w+:`~?(?:[\w.]*\.)?([\w]+)`")


def filled(markdown: str) -> str:
    """The page with every comment of these replaced by what it asks for."""
    return DIRECTIVE.sub(lambda found: MAKERS[found[1]](found[2]), markdown)


def found_at(path: str) -> Any:
    """What stands at a dotted path: a module's attribute, or an attribute of that."""
    parts = path.split(".")
    for end in range(len(parts) - 1, 0, -1):
        try:
            thing: Any = importlib.import_module(".".join(parts[:end]))
        except ModuleNotFoundError:
            continue
        for name in parts[end:]:
            thing = getattr(thing, name)
        return thing
    raise ValueError(f"nothing at {path}")


def all_options(path: str) -> str:
    """The table of a dataclass's options."""
    return option_table([(known, []) for known in documented(found_at(path))])


def own_options(path: str) -> str:
    """The table of the options that a dataclass declares itself."""
    cls = found_at(path)
    bases = [base for base in cls.__mro__[1:] if is_dataclass(base)]
    inherited = {known.name for base in bases for known in fields(base)}
    return option_table([(known, []) for known in documented(cls) if known.name not in inherited])


def options_of_registry(path: str) -> str:
    """The table of the options of everything that is registered, each once, with who has it."""
    registry: Registry[Any] = found_at(path)
    owners: Dict[str, Tuple[Field[Any], List[str]]] = {}
    for name in registry.names():
        for known in documented(registry[name].Options):  # type: ignore[attr-defined]
            owners.setdefault(known.name, (known, []))[1].append(name)
    return option_table(list(owners.values()))


def documented(cls: type) -> List["Field[Any]"]:
    """The fields of a dataclass that are options: they say what they mean."""
    assert is_dataclass(cls), cls
    return [known for known in fields(cls) if known.metadata.get("help")]


def option_table(options: List[Tuple["Field[Any]", List[str]]]) -> str:
    """A row for each option: flag, values, default, meaning, and who has it where that is said."""
    header = ["option", "values", "default", "meaning"]
    rows = []
    with_owners = any(owners for _, owners in options)
    for known, owners in options:
        row = [f"`{flag_of(known.name)}`", values_of(known), default_text(known), str(known.metadata["help"])]
        rows.append([*row, ", ".join(f"`{owner}`" for owner in owners)] if with_owners else row)
    return table([*header, "of"] if with_owners else header, rows)


def values_of(known: "Field[Any]") -> str:
    """What an option takes."""
    names = allowed_names(known)
    kinds = [kind for kind in (known.type, *get_args(known.type)) if isinstance(kind, type)]
    for kind in kinds:
        if issubclass(kind, Enum):
            names = names or [str(member.value) for member in kind]
    if names:
        return ", ".join(f"`{name}`" for name in names)
    if known.type is bool:
        return "switch"
    simple = {int: "integer", float: "number", str: "text"}
    if "List" in str(known.type):
        return "integers, with commas"
    return next((simple[kind] for kind in kinds if kind in simple), "text")


def default_text(known: "Field[Any]") -> str:
    """The default as a reader needs it; nothing where the meaning tells it."""
    default = default_of(known)
    if isinstance(default, Enum):
        default = default.value
    if default in (None, "", (), []) or known.type is bool:
        return "off" if default is False else "on" if default is True else ""
    interpolated = re.fullmatch(r"\$\{(?:\w+\.)?(\w+)\}", str(default))
    return f"as `{flag_of(interpolated[1])}`" if interpolated else f"`{default}`"


def names_of_registry(path: str) -> str:
    """The table of what is registered, with the first sentence of its description; of mechanisms also their places."""
    registry: Registry[Any] = found_at(path)
    header, rows = ["name", "what it is"], []
    for name in registry.names():
        cls = registry[name]
        row = [f"`{name}`", first_sentence(cls)]
        if hasattr(cls, "placements"):
            header = ["name", "what it is", "placements, the usual one first", "also"]
            row += [", ".join(f"`{place}`" for place in cls.placements), ", ".join(also_serves(cls))]
        rows.append(row)
    return table(header, rows)


def also_serves(mechanism: type) -> Iterable[str]:
    """By which other options a context mechanism can be chosen."""
    from docnmt_fairseq.context.base import DecoderContextMechanism, TargetContextMechanism

    if issubclass(mechanism, DecoderContextMechanism):
        yield "`--decoder-context-attention`"
    if issubclass(mechanism, TargetContextMechanism):
        yield "`--target-context-attention`"


def first_sentence(cls: type) -> str:
    """The first paragraph of a class's description, or of its nearest base that has one, in one line."""
    text = next((base.__doc__ for base in cls.__mro__ if base.__doc__), "")
    return as_markdown(" ".join(text.strip().split("\n\n")[0].split()))


def as_markdown(text: str) -> str:
    """Text of a docstring, its references as code; what is in brackets is no link."""
    return ROLE.sub(r"`\1`", text).replace("``", "`").replace("] [", "] \\[")


def command_help(name: str) -> str:
    """What a subcommand of ``docnmt`` says of itself."""
    from docnmt_fairseq.cli import build_parser

    (commands,) = (action for action in build_parser()._actions if action.dest == "command")
    parser = commands.choices[name]  # type: ignore[index]
    parser.formatter_class = type("Wide", (parser.formatter_class,), {"__init__": wide(parser.formatter_class)})
    return f"```text\n{parser.format_help().rstrip()}\n```"


def wide(formatter: type) -> Callable[..., None]:
    """A constructor of argparse's formatter whose lines do not depend on the terminal."""
    return lambda self, prog: formatter.__init__(self, prog, width=100)  # type: ignore[misc]


def table(header: List[str], rows: List[List[str]]) -> str:
    """A Markdown table; bars and tags inside its cells are text."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(map(as_cell, line))} |" for line in lines)


def as_cell(text: str) -> str:
    """Text of a cell; ``<p>`` outside of code would be a tag."""
    parts = CODE.split(text.replace("|", "\\|").replace("\n", " "))  # every second part is code
    return "".join(part if number % 2 else part.replace("<", "&lt;") for number, part in enumerate(parts))


MAKERS: Dict[str, Callable[[str], str]] = {
    "options": all_options,
    "own options": own_options,
    "options of": options_of_registry,
    "names": names_of_registry,
    "command": command_help,
}
