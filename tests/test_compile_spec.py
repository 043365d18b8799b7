"""What people type about a program and its inputs."""

from __future__ import annotations

from typing import Any

import pytest

from xlamem.compiler.spec import ArraySpec, parse_axes, parse_mesh, parse_setting, parse_value
from xlamem.errors import ProgramError


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("f32[8,128]", ArraySpec("float32", (8, 128))),
        (" bf16[ 3 , 4 ] ", ArraySpec("bfloat16", (3, 4))),
        ("s32[]", ArraySpec("int32", ())),
        ("u8[2]", ArraySpec("uint8", (2,))),
        ("pred[2]", ArraySpec("bool_", (2,))),
        ("float32[2]", ArraySpec("float32", (2,))),
        ("f8e4m3fn[2]", ArraySpec("float8_e4m3fn", (2,))),
        ("3", 3),
        ("0.5", 0.5),
        ("None", None),
        ("[1, 2]", [1, 2]),
        ("'f32[2]'", "f32[2]"),
        ("relu", "relu"),
    ],
)
def test_a_value_is_an_array_a_literal_or_a_word(text: str, value: Any) -> None:
    assert parse_value(text) == value


@pytest.mark.parametrize("text", ["f32[8,", "f32[8;128]", "f32[a]", "[f32"])
def test_what_looks_like_an_array_must_be_one(text: str) -> None:
    if text.startswith("["):
        assert parse_value(text) == text
        return
    with pytest.raises(ProgramError, match="write element type and shape"):
        parse_value(text)


def test_settings_meshes_and_shardings() -> None:
    assert parse_setting("batch=32") == ("batch", "32")
    assert parse_mesh("data=4,model=2") == {"data": 4, "model": 2}
    assert parse_axes("args[1]=data") == ("args[1]", ("data",))
    assert parse_axes("params['w']=None,data+model") == ("params['w']", (None, ("data", "model")))
    assert parse_axes("x=") == ("x", ())


@pytest.mark.parametrize("text", ["batch", "=3", "a b=3"])
def test_a_setting_without_a_name_is_refused(text: str) -> None:
    with pytest.raises(ProgramError, match="name=value"):
        parse_setting(text)


def test_a_mesh_axis_has_a_length() -> None:
    with pytest.raises(ProgramError, match="must be a number, not 'x'"):
        parse_mesh("data=x")
