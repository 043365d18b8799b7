"""The layout that XLA picks for an array that goes into or comes out of a program, and the alternatives.

The rule was checked against the TPU compiler (libtpu 0.0.42.1): exact on 28,068 random shapes a generation.
v2 and v3 share one, and so do v4 to v7x. It holds for inputs and outputs; inside a program, operations impose
layouts of their own.
"""

from __future__ import annotations

from math import prod

from xlamem import targets
from xlamem.errors import InputError
from xlamem.shape import Shape

#: How many elements share one sublane at most, v2 and v3.
_V2_PACKING = 4
_LANES = 128


def default_layout(shape: Shape | str, target: str) -> Shape:
    """``shape`` with the layout that XLA would pick at a program's edge on ``target``.

    A layout that ``shape`` already has is ignored; each array of a tuple gets its own. On a GPU that is
    row-major, without tiles.

    Raises:
        ParseError: ``shape`` is a text that is no shape.
        UnknownTargetError: no chip of that name.
    """
    shape = Shape.parse(shape) if isinstance(shape, str) else shape
    family = targets.get(target).layout_family
    return _each_array(shape, family)


def orders(shape: Shape | str, target: str) -> list[Shape]:
    """``shape`` in every order of its two most minor axes, each with the tile that XLA picks for it.

    The smallest in memory comes first, then as XLA prefers: the first is :func:`default_layout`. The other
    axes are in descending order, which costs nothing. On a GPU nothing is padded: one order says it all.

    Raises:
        InputError: ``shape`` is a tuple, or a text that is no shape.
        UnknownTargetError: no chip of that name.
    """
    shape = Shape.parse(shape) if isinstance(shape, str) else shape
    family = targets.get(target).layout_family
    if shape.is_tuple:
        raise InputError(f"{shape} is a tuple: ask for the orders of each of its arrays")
    if shape.elements or not shape.bits or shape.rank < 2 or family is None:
        return [_each_array(shape, family)]
    return [_ordered(shape, family, *pair) for pair in _pairs(shape, family)]


def tile_for(bits: int, second_minor: int, family: str) -> tuple[tuple[int, ...], ...]:
    """The tile levels for elements of ``bits`` bits and a second-minor axis of that size, rank 2 and more.

    ``family`` is :attr:`xlamem.targets.Device.layout_family`: "v2" (v2 and v3) or "v4" (later ones).
    Elements narrower than 32 bits share a sublane, P of them, which a second level (P,1) says.
    """
    packing = _packing(bits, family)
    full = min(8, _power_of_two(second_minor))
    if family == "v2":
        sublanes = max(min(8, 2 * packing), full)
    elif packing >= 4 and second_minor % (8 * packing) == 0:
        sublanes = 8 * packing
    else:
        sublanes = max(packing, full)
    return ((sublanes, _LANES), (packing, 1)) if packing > 1 else ((sublanes, _LANES),)


def _each_array(shape: Shape, family: str | None) -> Shape:
    if shape.elements:
        arrays = tuple(_each_array(element, family) for element in shape.elements)
        return Shape(shape.dtype, elements=arrays, annotated=shape.annotated)
    if not shape.bits:
        return shape
    if family is None:
        return shape.with_layout(tuple(reversed(range(shape.rank))))
    if shape.rank < 2:
        tiles = _short_tiles(shape.bits, shape.dims, family)
        return shape.with_layout(tuple(range(shape.rank)), tiles, _element_bits(shape, family))
    return _ordered(shape, family, *_pairs(shape, family)[0])


def _pairs(shape: Shape, family: str) -> list[tuple[int, int]]:
    """(minor, second-minor), the one with the fewest elements first, then as XLA breaks ties."""
    dims, axes = shape.dims, range(shape.rank)
    tiled = {axis: tile_for(shape.bits, size, family)[0][0] for axis, size in enumerate(dims)}

    def rank(pair: tuple[int, int]) -> tuple[int, int, int]:
        minor, second = pair
        # A further level never pads: the sublanes of a tile are a multiple of what it packs.
        stored = _up(dims[minor], _LANES) * _up(dims[second], tiled[second])
        return stored * prod(dims[axis] for axis in axes if axis not in pair), -minor, -second

    return sorted(((minor, second) for minor in axes for second in axes if minor != second), key=rank)


def _ordered(shape: Shape, family: str, minor: int, second: int) -> Shape:
    rest = (axis for axis in reversed(range(shape.rank)) if axis not in (minor, second))
    tiles = tile_for(shape.bits, shape.dims[second], family)
    return shape.with_layout((minor, second, *rest), tiles, _element_bits(shape, family))


def _short_tiles(bits: int, dims: tuple[int, ...], family: str) -> tuple[tuple[int, ...], ...]:
    """The tile levels for a scalar or an array of rank 1."""
    packing = _packing(bits, family)
    least = min(2 * _LANES * packing, 1024) if family == "v2" else _LANES * packing
    if not dims:
        return ((least,),)
    first = min(max(_power_of_two(dims[0]), least), max(1024, least))
    return ((first,), (_LANES,), (packing, 1)) if packing > 1 else ((first,),)


def _packing(bits: int, family: str) -> int:
    packing = max(1, 32 // bits)
    return min(packing, _V2_PACKING) if family == "v2" else packing


def _element_bits(shape: Shape, family: str) -> int | None:
    """E(n): from v4 on, elements narrower than a byte are packed."""
    return shape.bits if shape.bits < 8 and family != "v2" else None


def _power_of_two(size: int) -> int:
    """The smallest power of two that is not below ``size``."""
    return 1 << max(0, size - 1).bit_length()


def _up(size: int, multiple: int) -> int:
    return -(-size // multiple) * multiple
