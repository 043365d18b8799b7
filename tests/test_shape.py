"""Shapes: the grammar, printing back, bytes, and which axis the padding belongs to."""

from __future__ import annotations

import json
import subprocess
import sys
from fractions import Fraction
from math import prod
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from xlamem.element_types import BITS
from xlamem.errors import InputError, ParseError
from xlamem.shape import UNBOUNDED, Layout, Shape
from xlamem.tiling import COMBINE, format_factor

FIXTURES = Path(__file__).parent.parent / "fixtures"

ARRAY_TYPES = [name for name, bits in BITS.items() if bits]


@st.composite
def layouts(draw: st.DrawFn, rank: int) -> Layout:
    sizes = st.sampled_from([1, 2, 3, 4, 8, 16, 128])
    tile = st.lists(sizes, min_size=1, max_size=3).map(tuple)
    return Layout(
        minor_to_major=tuple(draw(st.permutations(range(rank)))),
        tiles=tuple(draw(st.lists(tile, max_size=3))),
        element_bits=draw(st.none() | st.sampled_from([1, 2, 4, 8, 16, 32, 64, 128])),
        memory_space=draw(st.integers(0, 8)),
        tail_alignment=draw(st.sampled_from([1, 1, 1024])),
    )


@st.composite
def arrays(draw: st.DrawFn) -> Shape:
    dims = draw(st.lists(st.integers(1, 300), max_size=5))
    layout = draw(st.none() | layouts(len(dims)))
    return Shape(draw(st.sampled_from(ARRAY_TYPES)), tuple(dims), layout=layout)


shapes = st.recursive(
    arrays() | st.sampled_from([Shape("token"), Shape("opaque")]),
    lambda inner: st.lists(inner, max_size=12).map(lambda e: Shape("tuple", elements=tuple(e))),
    max_leaves=20,
)


# --- reading and printing ---


@given(shapes)
def test_a_printed_shape_reads_back_as_the_same_shape(shape: Shape) -> None:
    again = Shape.parse(str(shape))
    assert again == shape
    assert str(again) == str(shape)


@given(shapes, st.text(max_size=5), st.sampled_from(["", " ", ", s32[]", ") tuple(%a)", " fusion(%b)"]))
def test_a_prefix_ends_where_the_shape_does(shape: Shape, before: str, after: str) -> None:
    text = str(shape)
    assert Shape.parse_prefix(before + text + after, len(before)) == (shape, len(before) + len(text))


@pytest.mark.parametrize(
    "text",
    [
        "f32[8,3]{1,0:T(8,128)(2,1)E(32)S(1)}",
        "f32[8,3]{1,0:T(8,128)L(1024)#(u32)*(u64)E(16)S(1)SC(1:4,8)(0:3)M(8)}",
        "f32[8,3]{1,0:T(8,128)(2,1)E(32)S(1)L(1024)}",  # not in XLA's order, and kept in its own
        "f32[8,3]{1,0:D(D,C+~)#(invalid)P((f32[2]{0}, s32[3]{0}))}",
        "f32[8,3]{1,0:T(8,*,128)}",
        "f32[8,3]{1,0:SC(1:)}",
        "f32[?,<=3]{1,0}",
        "f32[]{:T(128)S(6)}",
        "u32[]{:S(2)}",
        "f32[]{}",
        "f32[8,3]",
        "token[]",
        "opaque[]",
        "()",
        "(())",
        "((f32[3]), s32[])",
        "(b(f32[3]{0:T(128)}), token[])",
        "(f32[1], f32[2], f32[3], f32[4], f32[5], /*index=5*/f32[6], f32[7], f32[8], f32[9], f32[10],"
        " /*index=10*/f32[11])",
        "(f32[1], f32[2], f32[3], f32[4], f32[5], f32[6])",
    ],
)
def test_text_comes_back_as_it_was(text: str) -> None:
    assert str(Shape.parse(text)) == text


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        (" f32[8,3]\n", "f32[8,3]"),
        ("f32[8, 3] {1, 0 : T( 8 , 128 ) (2, 1) S( 1 )}", "f32[8,3]{1,0:T(8,128)(2,1)S(1)}"),
        ("(f32[3],f32[4])", "(f32[3], f32[4])"),
        ("( )", "()"),
        ("f32[8]{0:S(0)L(1)E(0)M(0)}", "f32[8]{0}"),
        ("f32[007]", "f32[7]"),
    ],
)
def test_white_space_and_defaults_are_not_printed(text: str, canonical: str) -> None:
    assert str(Shape.parse(text)) == canonical


def test_every_part_of_an_array_is_read() -> None:
    shape = Shape.parse("bf16[<=10,64,?]{2,0,1:T(8,*,128)(2,1)L(4)E(32)S(5)SC(1:32)M(16)}")
    assert (shape.dtype, shape.bits, shape.rank) == ("bf16", 16, 3)
    assert shape.dims == (10, 64, UNBOUNDED)
    assert shape.dynamic == (True, False, True)
    assert shape.count == 640
    assert shape.layout == Layout(
        (2, 0, 1),
        ((8, COMBINE, 128), (2, 1)),
        element_bits=32,
        memory_space=5,
        dynamic_prefix=16,
        tail_alignment=4,
        splits=((1, (32,)),),
    )


def test_a_tuple_gives_its_leaves_in_order() -> None:
    shape = Shape.parse("((f32[3], (s8[2])), token[], ())")
    assert shape.is_tuple
    assert [str(leaf) for leaf in shape.leaves()] == ["f32[3]", "s8[2]", "token[]"]
    assert shape.count == 5
    assert [str(leaf) for leaf in Shape.parse("f32[3]").leaves()] == ["f32[3]"]


def test_comments_make_no_difference_to_what_a_tuple_means() -> None:
    bare = "(f32[1], f32[1], f32[1], f32[1], f32[1], f32[1])"
    commented = "(f32[1], f32[1], f32[1], f32[1], f32[1], /*index=5*/f32[1])"
    assert Shape.parse(bare) == Shape.parse(commented)
    assert hash(Shape.parse(bare)) == hash(Shape.parse(commented))


def test_a_brace_that_is_no_layout_is_left_alone() -> None:
    header = "%f (p: s32[2]) -> f32[8] {"
    assert Shape.parse_prefix(header, header.index("f32")) == (
        Shape("f32", (8,)),
        len("%f (p: s32[2]) -> f32[8]"),
    )


# --- errors ---


@pytest.mark.parametrize(
    ("text", "what", "position"),
    [
        ("f23[8]", "no element type 'f23'; did you mean f32?", 0),
        ("int8[8]", "did you mean s8?", 0),
        ("F32[8]", "did you mean f32?", 0),
        ("float8_e4m3fn[8]", "did you mean f8e4m3fn?", 0),
        ("quux[8]", "no element type 'quux'; there are pred, s1", 0),
        ("", "the shape is cut off: expected a shape", 0),
        ("[8]", "expected a shape: an element type such as f32, or ( for a tuple", 0),
        ("f32", "expected [ after the element type", 3),
        ("f32[8", "the shape is cut off", 5),
        ("f32[8,,3]", "expected a size, such as 8, <=8 or ?", 6),
        ("f32[8 3]", "expected , or ] after a size", 6),
        ("f32[-1]", "expected a size", 4),
        ("f32[9223372036854775808]", "a number of 2^63 or more", 4),
        ("f32[8,3]{1}", "the layout must list the axes 0 to 1, each once", 8),
        ("f32[8,3]{1,1}", "the layout must list the axes 0 to 1, each once", 8),
        ("f32[8,3]{:T(8,128)}", "the layout must list the axes 0 to 1, each once", 8),
        ("f32[]{0}", "the layout must list the axes none, for a scalar", 5),
        ("f32[8,3]{1,0:T(8,128)", "the shape is cut off", 21),
        ("f32[8,3]{1,0:T(8,128)X(3)}", "expected } or one of D( T( L(", 21),
        ("f32[8,3]{1,0:T(8,0)}", "a tile size of 0", 15),
        ("f32[8,3]{1,0:S(1)S(2)}", "a second S(", 17),
        ("f32[8,3]{1,0:SC(2:4)}", "no axis 2 to split", 16),
        ("token[3]", "a token has no sizes: token[]", 5),
        ("(f32[3], s32[]", "the shape is cut off: expected , or ) after a shape", 14),
        ("(f32[3],)", "expected a shape", 8),
        ("b((f32[3]))", "a buffer holds one array", 2),
        ("f32[3] f32", "the shape f32[3] ends here, and something follows", 7),
    ],
)
def test_errors_say_what_and_where(text: str, what: str, position: int) -> None:
    with pytest.raises(ParseError) as caught:
        Shape.parse(text)
    assert what in str(caught.value)
    assert caught.value.position == position
    *_, shown, caret = str(caught.value).split("\n")
    assert shown == "  " + text
    assert caret == "  " + " " * position + "^"


def test_the_position_of_a_prefix_counts_from_the_start_of_the_text() -> None:
    with pytest.raises(ParseError) as caught:
        Shape.parse_prefix("shape: f32[8,x]", 7)
    assert caught.value.position == 13


@pytest.mark.parametrize(
    "text",
    [
        "f32[" + "9" * 1_000_000 + "]",
        "f32[8]{0:S(" + "1" * 1_000_000 + ")}",
        "(" * 10_000,
        "(" * 10_000 + "f32[3]" + ")" * 10_000,
        "f32[" + "1," * 10_000,
        "f32[8]{0:T" + "(8,128)" * 10_000,
        "f32[8]{0:P(" + "(" * 100_000,
        "(" + "/*" * 100_000,
        "f32[3" + " " * 100_000,
        "a" * 100_000,
    ],
    ids=lambda text: text[:12],
)
def test_absurd_input_is_refused_like_any_other(text: str) -> None:
    with pytest.raises(ParseError) as caught:
        Shape.parse(text)
    assert len(str(caught.value)) < 1000


@given(st.text(alphabet="()[]{}<=?,:/*0123456789TESLMCPD#fb32spred tokenindex", max_size=40))
def test_any_text_is_a_shape_or_a_parse_error(text: str) -> None:
    try:
        shape = Shape.parse(text)
    except ParseError:
        return
    assert Shape.parse(str(shape)) == shape


# --- bytes ---


def test_bytes_are_those_of_the_compilers_buffer_assignment() -> None:
    rows = [json.loads(line) for line in (FIXTURES / "tiles.jsonl").read_text().splitlines()]
    assert len(rows) > 300
    wrong = [r for r in rows if Shape.parse(r["shape"]).padded_bytes_on(r["target"]) != r["bytes"]]
    assert wrong == []
    untargeted = [
        r
        for r in rows
        if (s := Shape.parse(r["shape"])).layout is not None and s.padded_bytes != r["bytes"] and s.dims
    ]
    assert untargeted == []
    assert [r["shape"] for r in rows if str(Shape.parse(r["shape"])) != r["shape"]] == []


@pytest.mark.parametrize(
    ("text", "padded", "unpadded"),
    [
        ("f32[409600,1,64,64]{0,1,3,2:T(2,128)}", 13421772800, 6710886400),
        ("bf16[3,3,1,1]{3,2,1,0:T(4,128)(2,1)}", 9216, 18),
        ("f32[]{:T(128)}", 512, 4),
        ("f32[8,3]", 96, 96),
        ("f32[8,3]{1,0}", 96, 96),
        ("pred[10]", 10, 10),
        ("s4[10]", 10, 10),  # a byte each, unless the layout says otherwise
        ("s4[11]{0:E(4)}", 6, 6),
        ("f6e2m3fn[4]", 4, 4),
        ("c128[2]", 32, 32),
        ("pred[4096,4096]{1,0:T(8,128)E(32)}", 67108864, 16777216),
        ("f32[<=100]{0:T(128)M(1024)}", 512 + 1024, 400),
        ("f32[10,128]{1,0:T(8,128)SC(0:4)}", 4096, 5120),  # pieces of 4 and 6 rows: 6 fill one tile
        ("f32[3,5]{1,0:T(*,4)}", 64, 60),  # 15 elements in a row, in tiles of 4
        ("f32[100]{0:T(8,128)}", 4096, 400),  # an axis of 1 is put in front
        ("f32[3]{0:T(2)L(8)}", 32, 12),
        ("f32[0,3]{1,0:T(8,128)}", 0, 0),
        ("f32[?,8]", 32, 32),
        ("token[]", 0, 0),
        ("opaque[]", 0, 0),
        ("()", 0, 0),
        ("(f32[3]{0:T(128)}, (s32[2]), token[])", 520, 20),
        ("b(f32[3]{0:T(128)})", 512, 12),
    ],
)
def test_sizes_worked_out_by_hand(text: str, padded: int, unpadded: int) -> None:
    shape = Shape.parse(text)
    assert (shape.padded_bytes, shape.unpadded_bytes) == (padded, unpadded)
    assert shape.padding == padded - unpadded
    assert shape.expansion == (padded / unpadded if unpadded else None)


@pytest.mark.parametrize(
    ("text", "target", "expected"),
    [
        ("(f32[3], s32[])", "v2", 1024),
        ("(f32[3], s32[])", "v5e", 512),
        ("(f32[3], s32[])", "v6e", 32),
        ("(f32[3], s32[])", "h100", 16),
        ("((f32[3], s32[]), f32[8])", "v5p", 32),
        (f"({', '.join(['f32[1]'] * 9)})", "v7x", 64),
        ("()", "v5e", 0),
        ("f32[]", "v5e", 4096),
        ("f32[]", "h100", 4),
        ("s16[]", "v2", 2048),
        ("u32[]{:S(2)}", "v4", 4),
        ("u32[]{:S(8)}", "v7x", 4),
        ("f32[]{:S(5)}", "v5e", 4096),
        ("f32[]{:T(128)}", "v5e", 512),
        ("token[]", "v5e", 0),
    ],
)
def test_what_depends_on_the_target(text: str, target: str, expected: int) -> None:
    assert Shape.parse(text).padded_bytes_on(target) == expected


@given(arrays())
def test_padding_is_never_negative_unless_elements_are_stored_in_fewer_bits(shape: Shape) -> None:
    assert shape.padding >= 0


@given(arrays(), st.data())
def test_a_longer_axis_never_takes_fewer_bytes(shape: Shape, data: st.DataObject) -> None:
    if not shape.rank:
        return
    axis = data.draw(st.integers(0, shape.rank - 1))
    dims = list(shape.dims)
    dims[axis] += data.draw(st.integers(1, 300))
    assert shape.with_dims(dims).padded_bytes >= shape.padded_bytes


# --- which axis ---


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("f32[409600,1,64,64]{0,1,3,2:T(2,128)}", [(1, 1, 2, "sublane")]),
        ("bf16[3,3,1,1]{3,2,1,0:T(4,128)(2,1)}", [(3, 1, 128, "lane"), (2, 1, 4, "sublane")]),
        ("bf16[10,64,64,64,64]{2,1,0,4,3:T(8,128)(2,1)}", [(2, 64, 128, "lane")]),
        ("bf16[1,128]{1,0:T(1,128)(2,1)}", [(0, 1, 2, "packing")]),
        ("pred[4096,4096]{1,0:T(8,128)E(32)}", [(None, 8, 32, "element")]),
        ("f32[]{:T(128)}", [(None, 1, 128, "scalar")]),
        ("bf16[700]{0:T(1024)(128)(2,1)}", [(0, 700, 1024, "tile")]),
        ("f32[100]{0:T(8,128)}", [(0, 100, 128, "lane"), (None, 1, 8, "sublane")]),
        ("f32[3,8,128]{2,1,0:T(2,8,128)}", [(0, 3, 4, "tile")]),
        ("f32[10,128]{1,0:T(8,128)SC(0:4)}", [(0, 10, 6, "split"), (0, 6, 8, "sublane")]),
        ("f32[3]{0:T(2)L(8)}", [(0, 3, 4, "tile"), (None, 4, 8, "tail")]),
        ("f32[<=128]{0:T(128)M(1024)}", [(None, 512, 1536, "prefix")]),
        ("f32[8,128]{1,0:T(8,128)}", []),
        ("f32[8,3]", []),
        ("f32[0,3]{1,0:T(8,128)}", []),
        ("(f32[]{:T(128)})", []),
    ],
)
def test_padding_is_charged_to_its_axis(text: str, expected: list[tuple[int | None, int, int, str]]) -> None:
    found = Shape.parse(text).axis_padding
    assert [(part.axis, part.size, part.padded, part.why) for part in found] == expected


@given(arrays())
def test_the_factors_multiply_to_the_expansion(shape: Shape) -> None:
    product = prod((Fraction(p.padded, p.size) for p in shape.axis_padding), start=Fraction(1))
    layout = shape.layout
    stored = (layout and layout.element_bits) or max(8, shape.bits)
    own = min(stored, max(8, shape.bits))
    assert product * shape.count * own / 8 <= shape.padded_bytes < product * shape.count * own / 8 + 1
    if shape.count * own % 8 == 0:  # no byte is shared with nothing
        assert product * shape.unpadded_bytes <= shape.padded_bytes
    if own >= 8:
        assert product == Fraction(shape.padded_bytes, shape.unpadded_bytes)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("f32[409600,1,64,64]{0,1,3,2:T(2,128)}", "axis 1: 1 padded to 2 sublanes (2x)"),
        ("bf16[10,64,64]{2,1,0:T(8,128)(2,1)}", "axis 2: 64 padded to 128 lanes (2x)"),
        ("bf16[1,128]{1,0:T(1,128)(2,1)}", "axis 0: 1 padded to 2 by packing (2x)"),
        ("pred[8,128]{1,0:T(8,128)E(32)}", "each element: 8 padded to 32 bits (4x)"),
        ("f32[]{:T(128)}", "scalar: 1 padded to 128 elements (128x)"),
        ("f32[128]{0:T(8,128)}", "added axis: 1 padded to 8 sublanes (8x)"),
        ("f32[10,128]{1,0:SC(0:5)}", "axis 0: 10 cut to 5 on each core (0.5x)"),
    ],
)
def test_padding_in_words(text: str, words: str) -> None:
    assert [part.text for part in Shape.parse(text).axis_padding] == [words]


def test_a_factor_close_to_one_is_not_shown_as_one() -> None:
    assert [format_factor(f) for f in (1.0001, 1.5, 4 / 3, 128.0)] == ["<1.01x", "1.5x", "1.33x", "128x"]


# --- other shapes like it ---


def test_another_layout() -> None:
    shape = Shape.parse("f32[1048576,3]").with_layout((1, 0), [(8, 128)])
    assert str(shape) == "f32[1048576,3]{1,0:T(8,128)}"
    assert shape.padded_bytes == 512 * 2**20
    assert str(shape.without_layout()) == "f32[1048576,3]"
    assert str(Shape.parse("s4[8]").with_layout([0], element_bits=4, memory_space=1)) == "s4[8]{0:E(4)S(1)}"


@pytest.mark.parametrize("text", ["(f32[8])", "f32[8]", "f32[8,8,8]"])
def test_a_layout_must_fit(text: str) -> None:
    with pytest.raises(InputError, match=r"must list each of its \d axes once"):
        Shape.parse(text).with_layout((1, 0))


def test_other_sizes_and_types() -> None:
    shape = Shape.parse("s4[<=8,128]{0,1:T(8,128)(8,1)E(4)}")
    assert str(shape.with_dims((16, 256))) == "s4[16,256]{0,1:T(8,128)(8,1)E(4)}"
    assert str(shape.with_dims((16,))) == "s4[16]"
    assert str(shape.with_dtype("f32")) == "f32[<=8,128]{0,1:T(8,128)(8,1)}"
    with pytest.raises(ParseError, match="did you mean bf16"):
        shape.with_dtype("bfloat16")


@pytest.mark.parametrize(
    ("text", "assumed"),
    [
        ("f32[3,5,7]", "f32[3,5,7]{2,1,0:T(8,128)}"),
        ("f32[3,5]{0,1}", "f32[3,5]{0,1:T(8,128)}"),
        ("f32[3,5]{1,0:T(4,128)}", "f32[3,5]{1,0:T(4,128)}"),
        ("f32[5]{0}", "f32[5]{0}"),
        ("(f32[3,5]{0,1}, f32[])", "(f32[3,5]{0,1:T(8,128)}, f32[])"),
    ],
)
def test_a_tile_can_be_assumed(text: str, assumed: str) -> None:
    assert str(Shape.parse(text).assume_tile()) == assumed


def test_importing_it_brings_in_nothing_heavy() -> None:
    code = "import sys, xlamem.shape; print(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()
    assert not {"jax", "numpy", "pandas", "tomllib", "difflib", "xlamem.targets"} & set(loaded)
