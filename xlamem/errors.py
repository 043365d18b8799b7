"""Every exception that xlamem raises on purpose.

::

    XlamemError                  anything that xlamem raises on purpose
    ├── InputError               what was given cannot be used
    │   ├── NotReadableError     no such file, a directory where a file is due, not text, no permission
    │   ├── NotAReportError      it was read, and nothing in it is a memory report
    │   └── ParseError           a shape, a size or a report that does not follow its grammar
    └── UnknownTargetError       no chip of that name

The message of each says what was wrong, where, and what to do. The command line prints it without a
traceback.
"""

from __future__ import annotations


class XlamemError(Exception):
    """Base of every exception that xlamem raises on purpose."""


class InputError(XlamemError):
    """What was given cannot be used."""


class NotReadableError(InputError):
    """The input cannot be opened or decoded: no such file, no permission, binary."""


class NotAReportError(InputError):
    """The input was read, and nothing in it is a memory report."""


class ParseError(InputError, ValueError):
    """Text that does not follow its grammar.

    ``text`` is what was parsed and ``position`` the 0-based offset at which the grammar was left; the
    message shows both, with a caret under the spot.
    """

    def __init__(self, what: str, text: str, position: int) -> None:
        self.what = what
        self.text = text
        self.position = position
        # One line of context is enough, and a caret under a wrapped line misleads.
        start = max(0, position - 60)
        shown = text[start : position + 40].replace("\n", " ").replace("\t", " ")
        lead = "..." if start else ""
        caret = " " * (len(lead) + position - start) + "^"
        super().__init__(f"{what}\n  {lead}{shown}\n  {caret}")


class UnknownTargetError(XlamemError, ValueError):
    """No chip of that name is known."""
