"""Computed advice. The bytes were worked out by hand from the tile rules."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from xlamem.advice import advise_report
from xlamem.advice.shapes import advise_shape
from xlamem.readers import read
from xlamem.shape import Shape

LOGS = Path(__file__).parent.parent / "fixtures" / "logs"


def advice_on(text: str, target: str = "v5e") -> dict[str, tuple[int | None, int | None, str | None]]:
    return {a.name: (a.before, a.after, a.how) for a in advise_shape(Shape.parse(text), target)}


def test_the_seeds_convolution() -> None:
    found = advice_on("f32[409600,1,64,64]{0,1,3,2:T(2,128)}", "v2")
    assert found["order"][:2] == (13421772800, 6710886400)
    assert found["squeeze"] == (13421772800, 6710886400, "x = jnp.squeeze(x, axis=1)")
    # In the same order bf16 is padded to T(4,128)(2,1), and takes as much.
    assert "dtype" not in found
    # Axis 1, of size 1, must not be on the sublanes: a 64 is.
    order = found["order"][2]
    assert order is not None
    assert "major_to_minor=(1, 2, 3, 0)" in order or "major_to_minor=(1, 3, 2, 0)" in order


def test_a_row_major_array_of_points() -> None:
    found = advice_on("f32[1048576,3]{1,0:T(8,128)}")
    # 512 MiB row-major; {0,1:T(4,128)} takes 4 * 1048576 * 4 bytes.
    assert found["order"][:2] == (536870912, 16777216)
    assert found["merge"] == (536870912, 12582912, "x = x.reshape(3145728)")


def test_a_mask_in_32_bits() -> None:
    found = advice_on("pred[4096,4096]{1,0:T(8,128)E(32)}", "v2")
    assert found["dtype"] == (67108864, 16777216, "mask = mask.astype(jnp.int8)")


def test_nothing_padded_nothing_to_do() -> None:
    assert advise_shape(Shape.parse("f32[1024,1024]{1,0:T(8,128)}"), "v5e") == ()


def test_no_two_buffers_of_one_shape_get_advice_twice() -> None:
    report = read(LOGS / "0.0.7_v5e_padded_batchmat_22G.log")
    advice = [a for a in advise_report(report) if a.about is not None]
    shapes = {str(report.allocations[a.about].shape) for a in advice if a.about is not None}
    assert len(shapes) == len({a.about for a in advice})
    assert all(not a.verified and a.provenance == "computed" for a in advice)


def test_a_success_needs_no_advice() -> None:
    assert advise_report(read(LOGS / "0.0.42.1_v5e_batchmat_fit_stderr0.log")) == ()


dims = st.lists(st.integers(1, 300), min_size=1, max_size=5)


@given(dims=dims, dtype=st.sampled_from(["f32", "bf16", "s8", "pred", "c64"]), data=st.data())
def test_advice_is_about_this_shape_and_saves(dims: list[int], dtype: str, data: st.DataObject) -> None:
    order = data.draw(st.permutations(range(len(dims))))
    tile = "T(8,128)" if len(dims) > 1 else "T(1024)"
    layout = "{" + ",".join(map(str, order)) + f":{tile}" + "}"
    shape = Shape.parse(f"{dtype}[{','.join(map(str, dims))}]{layout}")
    for advice in advise_shape(shape, "v5e"):
        assert advice.before == shape.padded_bytes
        assert advice.saved is not None
        assert advice.saved > 0 or advice.name == "multiple"
        if advice.name != "dtype" and advice.after is not None:
            assert advice.after >= shape.unpadded_bytes


@pytest.mark.parametrize(
    "text", ["f32[]{:T(128)}", "(f32[3]{0:T(128)}, s32[])", "token[]", "f32[0,3]{1,0:T(8,128)}"]
)
def test_what_has_no_axes_to_move_is_left_alone(text: str) -> None:
    assert advise_shape(Shape.parse(text), "v5e") == ()
