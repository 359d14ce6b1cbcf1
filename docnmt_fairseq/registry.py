"""Registry of classes by the name that users give on the command line."""

import importlib
import pkgutil
from dataclasses import fields
from typing import Any, Callable, Dict, Generic, Iterable, List, Optional, Set, Type, TypeVar

from docnmt_fairseq.options import flag_of

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
        check: function that returns a contract violation of a class, or None.
    """

    def __init__(self, kind: str, check: Callable[[Type[T]], Optional[str]] = lambda _: None):
        self.kind, self.check = kind, check
        self._classes: Dict[str, Type[T]] = {}
        self._options: Optional[Set[str]] = None  # options that the models were defined with

    def register(self, name: str) -> Callable[[Type[T]], Type[T]]:
        """Class decorator that registers a class under a name.

        Raises:
            ValueError: the name is taken, the class violates its contract, or it declares options after the models
                were defined.
        """

        def decorate(cls: Type[T]) -> Type[T]:
            if name in self._classes:
                raise ValueError(f"{self.kind} {name!r} is already registered")
            problem = self.check(cls) or self._late(cls)
            if problem is not None:
                raise ValueError(f"{self.kind} {name!r}: {problem}")
            self._classes[name] = cls
            return cls

        return decorate

    def options(self) -> List[Type[Any]]:
        """Dataclasses ``Options`` of all registered classes; afterwards no class may add options."""
        found: List[Any] = [self._classes[name] for name in self.names()]
        self._options = {known.name for cls in found for known in fields(cls.Options)}
        return [cls.Options for cls in found]

    def _late(self, cls: Any) -> Optional[str]:
        """Message about options that the models were defined without, or None."""
        unknown = [] if self._options is None else [o.name for o in fields(cls.Options) if o.name not in self._options]
        if not unknown:
            return None
        flags = ", ".join(map(flag_of, unknown))
        return f"the models were defined without {flags}; import it first, before docnmt_fairseq.models"

    def __getitem__(self, name: str) -> Type[T]:
        if name not in self:
            raise ValueError(f"no {self.kind} {name!r}; available: {', '.join(self.names())}")
        return self._classes[name]

    def __contains__(self, name: object) -> bool:
        return name in self._classes

    def names(self) -> List[str]:
        """Returns the registered names, sorted."""
        return sorted(self._classes)
