"""How options of tasks, models and criterions are declared."""

from dataclasses import field


def option(default: object, help_text: str) -> object:
    """Returns a field of a configuration; its name is the option's."""
    return field(default=default, metadata={"help": help_text})
