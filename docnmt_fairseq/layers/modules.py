"""A list of modules of one class, known as such to whoever reads its elements."""

from typing import Generic, Iterable, Iterator, TypeVar

from torch import nn

M = TypeVar("M", bound=nn.Module)


class ModulesOf(nn.ModuleList, Generic[M]):
    """PyTorch's own list, with the same state; only the class of the elements is kept."""

    def __init__(self, modules: Iterable[M] = ()):
        super().__init__(modules)

    def __iter__(self) -> Iterator[M]:
        return super().__iter__()  # type: ignore[return-value]  # modules of any class, for PyTorch

    def __getitem__(self, number: int) -> M:  # type: ignore[override]  # no slices
        return super().__getitem__(number)  # type: ignore[return-value]  # see above
