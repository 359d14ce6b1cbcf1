"""Registry of classes by the name that users give on the command line."""

import importlib
import pkgutil
from typing import Any, Callable, Dict, Generic, Iterable, List, Type, TypeVar

from docnmt_fairseq.errors import InputError

T = TypeVar("T")


def import_folder(package: str, path: Iterable[str]) -> None:
    """Imports every module of a package, so that its classes are registered.

    Args:
        package: ``__name__`` of the package.
        path: ``__path__`` of the package.
    """
    for module in pkgutil.iter_modules(path):
        importlib.import_module(f"{package}.{module.name}")


class Registry(Generic[T]):
    """Classes by name.

    Args:
        kind: description of the registered classes for messages, e.g. "context mechanism".
    """

    def __init__(self, kind: str):
        self.kind = kind
        self._classes: Dict[str, Type[T]] = {}

    def register(self, name: str) -> Callable[[Type[T]], Type[T]]:
        """Class decorator that registers a class under a name; ``ValueError`` if the name is taken."""

        def decorate(cls: Type[T]) -> Type[T]:
            if name in self._classes:
                raise ValueError(f"{self.kind} {name!r} is already registered")
            self._classes[name] = cls
            return cls

        return decorate

    def options(self) -> List[Type[Any]]:
        """Dataclasses ``Options`` of all registered classes."""
        found: List[Any] = [self._classes[name] for name in self.names()]
        return [cls.Options for cls in found]

    def __getitem__(self, name: str) -> Type[T]:
        if name not in self:
            raise InputError(f"no {self.kind} {name!r}; available: {', '.join(self.names())}")
        return self._classes[name]

    def __contains__(self, name: object) -> bool:
        return name in self._classes

    def names(self) -> List[str]:
        """Returns the registered names, sorted."""
        return sorted(self._classes)
