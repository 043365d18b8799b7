"""Sequences that are made when somebody looks into them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar, overload

T = TypeVar("T")


class Lazy(Sequence[T]):
    """A tuple whose length is known and whose elements are made, all at once, when the first is asked for."""

    __slots__ = ("_items", "_length", "_make")

    def __init__(self, length: int, make: Callable[[], tuple[T, ...]]) -> None:
        self._length = length
        self._make: Callable[[], tuple[T, ...]] | None = make
        self._items: tuple[T, ...] = ()

    def items(self) -> tuple[T, ...]:
        """The tuple itself."""
        if self._make is not None:
            self._items, self._make = self._make(), None
        return self._items

    def __len__(self) -> int:
        return self._length

    @overload
    def __getitem__(self, at: int) -> T: ...
    @overload
    def __getitem__(self, at: slice) -> tuple[T, ...]: ...
    def __getitem__(self, at: int | slice) -> T | tuple[T, ...]:
        return self.items()[at]

    def __iter__(self) -> Iterator[T]:
        return iter(self.items())

    def __eq__(self, other: object) -> bool:
        return self.items() == (other.items() if isinstance(other, Lazy) else other)

    def __hash__(self) -> int:
        return hash(self.items())

    def __repr__(self) -> str:
        return repr(self.items())

    def __reduce__(self) -> tuple[Any, ...]:
        return tuple, (self.items(),)
