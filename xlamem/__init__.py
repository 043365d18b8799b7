"""xlamem reads whatever XLA says about memory and says who holds the bytes, and how many are padding.

The public names are those in ``__all__``. Each loads its module on first use, so that a command imports only
what it needs.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from xlamem.compiler import compile
    from xlamem.errors import (
        CompileError,
        CompilerError,
        CompileTimeoutError,
        InputError,
        MissingExtraError,
        NotAReportError,
        NotReadableError,
        ParseError,
        ProgramError,
        UnknownTargetError,
        UserCodeError,
        XlamemError,
    )
    from xlamem.explanation import explain
    from xlamem.finding import Advice, Check, Explanation, Finding, Fit
    from xlamem.layouts import default_layout
    from xlamem.readers import read, read_all
    from xlamem.report import Allocation, MemoryReport, Space
    from xlamem.shape import Shape

__version__ = "0.1.0"

_HOME = {
    "Advice": "finding",
    "Allocation": "report",
    "Check": "finding",
    "CompileError": "errors",
    "CompileTimeoutError": "errors",
    "CompilerError": "errors",
    "Explanation": "finding",
    "Finding": "finding",
    "Fit": "finding",
    "InputError": "errors",
    "MemoryReport": "report",
    "MissingExtraError": "errors",
    "NotAReportError": "errors",
    "NotReadableError": "errors",
    "ParseError": "errors",
    "ProgramError": "errors",
    "Shape": "shape",
    "Space": "report",
    "UnknownTargetError": "errors",
    "UserCodeError": "errors",
    "XlamemError": "errors",
    "compile": "compiler",
    "default_layout": "layouts",
    "explain": "explanation",
    "read": "readers",
    "read_all": "readers",
}

__all__ = [
    "Advice",
    "Allocation",
    "Check",
    "CompileError",
    "CompileTimeoutError",
    "CompilerError",
    "Explanation",
    "Finding",
    "Fit",
    "InputError",
    "MemoryReport",
    "MissingExtraError",
    "NotAReportError",
    "NotReadableError",
    "ParseError",
    "ProgramError",
    "Shape",
    "Space",
    "UnknownTargetError",
    "UserCodeError",
    "XlamemError",
    "compile",
    "default_layout",
    "explain",
    "read",
    "read_all",
]


def __getattr__(name: str) -> Any:
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module 'xlamem' has no attribute {name!r}")
    value = getattr(import_module(f"xlamem.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
