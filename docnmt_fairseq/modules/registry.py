"""A registry: names on the command line to classes, one a file."""

from typing import Callable, Dict, Generic, List, Type, TypeVar

T = TypeVar("T")


class Registry(Generic[T]):
    """Classes by name.

    Args:
        kind: what is registered, for messages, e.g. "context mechanism".
    """

    def __init__(self, kind: str):
        self.kind = kind
        self._classes: Dict[str, Type[T]] = {}

    def register(self, name: str) -> Callable[[Type[T]], Type[T]]:
        """Returns the class decorator that registers under ``name``; a name is given once."""

        def decorate(cls: Type[T]) -> Type[T]:
            if name in self._classes:
                raise ValueError(f"{self.kind} {name!r} is registered already")
            self._classes[name] = cls
            return cls

        return decorate

    def __getitem__(self, name: str) -> Type[T]:
        if name not in self._classes:
            raise ValueError(f"no {self.kind} {name!r}; there are: {', '.join(self.names())}")
        return self._classes[name]

    def names(self) -> List[str]:
        """Returns the registered names, sorted."""
        return sorted(self._classes)
