"""Makes text that came from the input harmless in each output, in one place.

A log is written by strangers: an operator's name can hold terminal escapes, markup, a formula or HTML.
"""

from __future__ import annotations

# What a spreadsheet takes for the start of a formula; the last four are the full-width forms.
_FORMULA = frozenset("=+-@\t\r＝＋－＠")

# Punctuation that Markdown, with GitHub's extensions, gives a meaning to anywhere in a line.
_MARKDOWN = {ord(c): f"\\{c}" for c in "\\`*_[]#~|!"}
_MARKDOWN |= {ord(c): f"&#{ord(c)};" for c in "&<@"}

# And those that have one at the start of a line.
_MARKDOWN_START = frozenset(">-+=")


def visible(text: str) -> str:
    """``text`` on one line, with everything that has no picture spelled out: ``\\x1b``, ``\\n``, ``\\u202e``.

    That covers control characters, bidirectional overrides, zero-width ones and lone surrogates.
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else _spelled(c) for c in text)


def _spelled(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")


def visible_lines(text: str) -> list[str]:
    """The lines of ``text``, each made visible; only a newline ends one."""
    return [visible(line.expandtabs(4)) for line in text.split("\n")]


def shorten(text: str, width: int) -> str:
    """``text`` in at most ``width`` characters, with ``...`` in its middle where it was longer."""
    if len(text) <= width:
        return text
    if width <= 3:
        return text[:width]
    tail = (width - 3) // 2
    return f"{text[: width - 3 - tail]}...{text[len(text) - tail :]}"


def shorten_path(path: str, width: int) -> str:
    """``path`` in at most ``width`` characters, keeping its end: the file matters more than its folders."""
    return path if len(path) <= width else "..." + path[len(path) - max(width - 3, 0) :]


def spreadsheet(text: str) -> str:
    """``text`` as a spreadsheet cell that is never taken for a formula."""
    text = visible(text)
    return f"'{text}" if text and text[0] in _FORMULA else text


def markdown(text: str) -> str:
    """``text`` as Markdown that shows exactly these characters: no markup, no HTML, no mention."""
    shown = visible(text).translate(_MARKDOWN)
    return f"\\{shown}" if shown[:1] in _MARKDOWN_START else shown


def markdown_code(text: str, *, in_table: bool = False) -> str:
    """``text`` as a Markdown code span, whose fence is longer than any run of backticks in it."""
    text = visible(text)
    fence = "`" * (_longest_run(text) + 1)
    space = " " if text.startswith("`") or text.endswith("`") else ""
    if in_table:
        # In a table GitHub splits cells before it reads code spans.
        text = text.replace("|", "\\|")
    return f"{fence}{space}{text}{space}{fence}"


def markdown_block(text: str) -> list[str]:
    """``text`` as the lines of a fenced code block of Python."""
    fence = "`" * max(3, _longest_run(text) + 1)
    return [f"{fence}python", *visible_lines(text), fence]


def _longest_run(text: str) -> int:
    longest = run = 0
    for character in text:
        run = run + 1 if character == "`" else 0
        longest = max(longest, run)
    return longest


def unicode(text: str) -> str:
    """``text`` with lone surrogates replaced: strict JSON readers refuse them."""
    return text.encode("utf-8", "replace").decode("utf-8") if not text.isascii() else text
