"""Every exception that xlamem raises on purpose.

::

    XlamemError                  anything that xlamem raises on purpose
    ├── InputError               what was given cannot be used
    │   ├── NotReadableError     no such file, a directory where a file is due, not text, no permission
    │   ├── NotAReportError      it was read, and nothing in it is a memory report
    │   └── ParseError           a shape, a size or a report that does not follow its grammar
    ├── CompileError             a compile gave no answer
    │   ├── MissingExtraError    the compiler for this target is not installed
    │   ├── ProgramError         the program cannot be compiled: no such function, inputs that do not match ...
    │   │   └── UserCodeError    the user's own code raised
    │   ├── CompilerError        the compiler refused, crashed, or could not start
    │   └── CompileTimeoutError  it took longer than allowed
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

    def __reduce__(self) -> tuple[type[ParseError], tuple[str, str, int]]:
        return ParseError, (self.what, self.text, self.position)


class UnknownTargetError(XlamemError, ValueError):
    """No chip of that name is known."""


class CompileError(XlamemError):
    """A compile gave no answer about memory. A program that does not fit is an answer, not an error."""


class MissingExtraError(CompileError):
    """The compiler for a target is not installed; the message says what to install."""


class ProgramError(CompileError):
    """The program cannot be compiled as it is: no such file or function, inputs that do not match it."""


class UserCodeError(ProgramError):
    """The user's own code raised while it was loaded or traced.

    ``traceback`` has their frames only, as Python prints them; ``exception`` is the name of its type.
    """

    def __init__(self, message: str, exception: str, traceback: str) -> None:
        super().__init__(message)
        self.exception = exception
        self.traceback = traceback

    def __reduce__(self) -> tuple[type[UserCodeError], tuple[str, str, str]]:
        return UserCodeError, (str(self), self.exception, self.traceback)


class CompilerError(CompileError):
    """The compiler refused the program, crashed, or could not start."""


class CompileTimeoutError(CompileError, TimeoutError):
    """The compile took longer than allowed."""
