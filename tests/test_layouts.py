"""The layout that XLA picks by itself, and the orders it could have picked."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from xlamem.errors import InputError, ParseError, UnknownTargetError
from xlamem.layouts import default_layout, orders, tile_for
from xlamem.shape import Shape

FIXTURES = Path(__file__).parent.parent / "fixtures"


def test_default_layouts_are_the_compilers() -> None:
    rows = [json.loads(line) for line in (FIXTURES / "layouts.jsonl").read_text().splitlines()]
    assert len(rows) > 300
    wrong = []
    for row in rows:
        bare = f"{row['dtype']}[{','.join(map(str, row['shape']))}]"
        if (found := str(default_layout(bare, row["target"]))) != bare + row["layout"]:
            wrong.append((row, found))
    assert wrong == []


@pytest.mark.parametrize(
    ("shape", "target", "expected"),
    [
        # 3 lanes of 128 would be 43x; 3 sublanes of 4 are not.
        ("f32[1048576,3]", "v5e", "f32[1048576,3]{0,1:T(4,128)}"),
        # v2 and v3 have no tile of 2 sublanes for 16 bits.
        ("bf16[2,128]", "v2", "bf16[2,128]{1,0:T(4,128)(2,1)}"),
        ("bf16[2,128]", "v4", "bf16[2,128]{1,0:T(2,128)(2,1)}"),
        # A byte type whose second-minor size is a multiple of 32 gets the tall tile.
        ("s8[64,128]", "v5p", "s8[64,128]{1,0:T(32,128)(4,1)}"),
        ("s8[64,128]", "v3", "s8[64,128]{1,0:T(8,128)(4,1)}"),
        ("s4[100,130]", "v6e", "s4[100,130]{0,1:T(8,128)(8,1)E(4)}"),
        ("f32[8,3]{1,0:T(8,128)S(1)}", "v5e", "f32[8,3]{0,1:T(4,128)}"),
        # Rank 1 and 0.
        ("f32[5]", "v5e", "f32[5]{0:T(128)}"),
        ("f32[300]", "v5e", "f32[300]{0:T(512)}"),
        ("f32[88772]", "v5e", "f32[88772]{0:T(1024)}"),
        ("bf16[5]", "v5e", "bf16[5]{0:T(256)(128)(2,1)}"),
        ("bf16[5]", "v2", "bf16[5]{0:T(512)(128)(2,1)}"),
        ("s2[5]", "v5e", "s2[5]{0:T(2048)(128)(16,1)E(2)}"),
        ("f32[]", "v7x", "f32[]{:T(128)}"),
        ("f32[]", "v2", "f32[]{:T(256)}"),
        ("pred[]", "v3", "pred[]{:T(1024)}"),
        ("s2[]", "v4", "s2[]{:T(2048)E(2)}"),
        # Each array of a tuple; what holds nothing has no layout.
        ("((f32[5], token[]), f32[])", "v5e", "((f32[5]{0:T(128)}, token[]), f32[]{:T(128)})"),
        ("f32[<=7,3]", "v5e", "f32[<=7,3]{0,1:T(4,128)}"),
        # A GPU pads nothing.
        ("f32[1048576,3]", "h100", "f32[1048576,3]{1,0}"),
        ("f32[]", "h100", "f32[]{}"),
    ],
)
def test_default_layouts_worked_out_by_hand(shape: str, target: str, expected: str) -> None:
    assert str(default_layout(shape, target)) == expected


@pytest.mark.parametrize(
    ("bits", "second_minor", "family", "expected"),
    [
        (32, 1, "v4", ((1, 128),)),
        (32, 5, "v4", ((8, 128),)),
        (32, 1, "v2", ((2, 128),)),
        (64, 3, "v4", ((4, 128),)),
        (16, 1, "v4", ((2, 128), (2, 1))),
        (16, 64, "v4", ((8, 128), (2, 1))),
        (8, 32, "v4", ((32, 128), (4, 1))),
        (8, 33, "v4", ((8, 128), (4, 1))),
        (4, 64, "v4", ((64, 128), (8, 1))),
        (4, 64, "v2", ((8, 128), (4, 1))),
    ],
)
def test_tiles(bits: int, second_minor: int, family: str, expected: tuple[tuple[int, ...], ...]) -> None:
    assert tile_for(bits, second_minor, family) == expected


@given(
    st.sampled_from(["f32", "bf16", "s8", "s4"]),
    st.lists(st.integers(1, 300), min_size=2, max_size=5),
    st.sampled_from(["v2", "v5e"]),
)
def test_orders_are_all_pairs_smallest_first(dtype: str, dims: list[int], target: str) -> None:
    shape = Shape(dtype, tuple(dims))
    found = orders(shape, target)
    assert found[0] == default_layout(shape, target)
    assert len(set(found)) == len(found) == len(dims) * (len(dims) - 1)
    sizes = [order.padded_bytes for order in found]
    assert sizes == sorted(sizes)
    assert all(order.without_layout() == shape for order in found)


def test_orders_with_their_bytes() -> None:
    found = orders("f32[1048576,3]", "v5e")
    assert [(str(order), order.padded_bytes) for order in found] == [
        ("f32[1048576,3]{0,1:T(4,128)}", 16 * 2**20),
        ("f32[1048576,3]{1,0:T(8,128)}", 512 * 2**20),
    ]


@pytest.mark.parametrize(("shape", "target"), [("f32[5]", "v5e"), ("f32[]", "v2"), ("f32[5,3]", "h100")])
def test_what_has_one_order_has_one(shape: str, target: str) -> None:
    assert orders(shape, target) == [default_layout(shape, target)]


def test_orders_of_a_tuple_are_refused() -> None:
    with pytest.raises(
        InputError, match=r"\(f32\[5\]\) is a tuple: ask for the orders of each of its arrays"
    ):
        orders("(f32[5])", "v5e")


def test_errors_pass_through() -> None:
    with pytest.raises(ParseError):
        default_layout("f32[", "v5e")
    with pytest.raises(UnknownTargetError):
        default_layout("f32[8]", "v99")
