"""The element types of HLO shapes and how many bits each one has."""

from __future__ import annotations

#: Bits of each element type, by the name that HLO text uses. ``token`` and ``opaque`` hold no data;
#: a ``pred`` is a byte.
BITS: dict[str, int] = {
    "pred": 8,
    **{f"{sign}{bits}": bits for sign in "su" for bits in (1, 2, 4, 8, 16, 32, 64)},
    "f4e2m1fn": 4,
    "f6e2m3fn": 6,
    "f6e3m2fn": 6,
    "f8e3m4": 8,
    "f8e4m3": 8,
    "f8e4m3b11fnuz": 8,
    "f8e4m3fn": 8,
    "f8e4m3fnuz": 8,
    "f8e5m2": 8,
    "f8e5m2fnuz": 8,
    "f8e8m0fnu": 8,
    "bf16": 16,
    "f16": 16,
    "f32": 32,
    "f64": 64,
    "c64": 64,
    "c128": 128,
    "token": 0,
    "opaque": 0,
}

# What people call them elsewhere: numpy, MLIR, C.
_OTHER_NAMES = {
    "bool": "pred",
    "i1": "pred",
    "half": "f16",
    "float": "f32",
    "double": "f64",
    "bfloat16": "bf16",
    "complex64": "c64",
    "complex128": "c128",
    **{f"float{bits}": f"f{bits}" for bits in (16, 32, 64)},
    **{f"int{bits}": f"s{bits}" for bits in (2, 4, 8, 16, 32, 64)},
    **{f"uint{bits}": f"u{bits}" for bits in (2, 4, 8, 16, 32, 64)},
    **{f"i{bits}": f"s{bits}" for bits in (2, 4, 8, 16, 32, 64)},
    **{f"ui{bits}": f"u{bits}" for bits in (2, 4, 8, 16, 32, 64)},
}


def suggest(name: str) -> str | None:
    """The element type that ``name`` was probably meant to be, or None: "f23" -> "f32", "int8" -> "s8"."""
    wanted = name[:32].lower().replace("float8_", "f8").replace("float4_", "f4")
    if wanted in BITS:
        return wanted
    if wanted in _OTHER_NAMES:
        return _OTHER_NAMES[wanted]
    from difflib import get_close_matches  # only ever needed for an error message

    close = get_close_matches(wanted, BITS, n=1, cutoff=0.6)
    return close[0] if close else None
