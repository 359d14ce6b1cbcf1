"""A registry: names on the command line to classes, one a file."""

import importlib
import pkgutil
from dataclasses import fields
from typing import Any, Callable, Dict, Generic, Iterable, List, Optional, Set, Type, TypeVar

from docnmt_fairseq.options import flag_of

T = TypeVar("T")


def import_folder(package: str, path: Iterable[str]) -> None:
    """Imports every file of a package's folder, so that what registers itself is registered.

    Args:
        package: ``__name__`` of the package.
        path: ``__path__`` of the package.
    """
    for module in pkgutil.iter_modules(path):
        importlib.import_module(f"{package}.{module.name}")


class Registry(Generic[T]):
    """Classes by name.

    Args:
        kind: what is registered, for messages, e.g. "context mechanism".
        check: what is wrong with a class, None: nothing.
    """

    def __init__(self, kind: str, check: Callable[[Type[T]], Optional[str]] = lambda _: None):
        self.kind, self.check = kind, check
        self._classes: Dict[str, Type[T]] = {}
        self._old: Dict[str, str] = {}  # former names
        self._options: Optional[Set[str]] = None  # those that the models were made with

    def register(self, name: str, old: Optional[str] = None) -> Callable[[Type[T]], Type[T]]:
        """A class decorator that registers under ``name``, and lets a former name stand for it; a name is given once.

        Raises:
            ValueError: the name is registered already, the class breaks its contract, or it has options that the models
                were made without.
        """

        def decorate(cls: Type[T]) -> Type[T]:
            if name in self._classes:
                raise ValueError(f"{self.kind} {name!r} is registered already")
            problem = self.check(cls) or self._late(cls)
            if problem is not None:
                raise ValueError(f"{self.kind} {name!r}: {problem}")
            self._classes[name] = cls
            if old is not None:
                self._old[old] = name
            return cls

        return decorate

    def options(self) -> List[Type[Any]]:
        """The dataclasses ``Options`` of all that is registered, for the models; none may come to them afterwards."""
        found: List[Any] = [self._classes[name] for name in self.names()]
        self._options = {known.name for cls in found for known in fields(cls.Options)}
        return [cls.Options for cls in found]

    def _late(self, cls: Any) -> Optional[str]:
        """Why a class comes too late, if so."""
        unknown = [] if self._options is None else [o.name for o in fields(cls.Options) if o.name not in self._options]
        if not unknown:
            return None
        flags = ", ".join(map(flag_of, unknown))
        return f"the models were made without {flags}; import it first, before docnmt_fairseq.models"

    def __getitem__(self, name: str) -> Type[T]:
        if name not in self:
            raise ValueError(f"no {self.kind} {name!r}; there are: {', '.join(self.names())}")
        return self._classes[self.current_name(name)]

    def __contains__(self, name: object) -> bool:
        return name in self._classes or name in self._old

    def current_name(self, name: str) -> str:
        """The name of today for a former one; any other as it is."""
        return self._old.get(name, name)

    def names(self) -> List[str]:
        """The registered names, sorted; without former ones."""
        return sorted(self._classes)

    def old_names(self) -> Dict[str, str]:
        """The former names, and what stands for each today."""
        return dict(self._old)
