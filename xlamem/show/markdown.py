"""Markdown as GitHub reads it: for issues, pull requests and job summaries."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from xlamem.show import escape, totals, words
from xlamem.show.rows import axis_texts

if TYPE_CHECKING:
    from xlamem.finding import Advice, Explanation, Peak
    from xlamem.report import Allocation, MemoryReport

_COLUMNS = (
    "#",
    "size",
    "unpadded",
    "padding",
    "expansion",
    "shape",
    "operator",
    "source",
    "type",
    "padded axes",
)
_RIGHT = frozenset({"#", "size", "unpadded", "padding", "expansion"})


def to_markdown(explanations: Sequence[Explanation], *, top: int = 20) -> str:
    """Every report in full, with its ``top`` largest allocations."""
    return "\n\n---\n\n".join("\n".join(_report(e, top)) for e in explanations) + "\n"


def table(
    columns: Sequence[str], records: Iterable[Mapping[str, str]], right: frozenset[str]
) -> Iterator[str]:
    """A table whose cells are Markdown already; ``right`` names the columns that hold figures."""
    yield f"| {' | '.join(columns)} |"
    yield f"|{'|'.join('--:' if column in right else '---' for column in columns)}|"
    for record in records:
        yield f"| {' | '.join(record[column] for column in columns)} |"


def _report(explanation: Explanation, top: int) -> Iterator[str]:
    report = explanation.report
    yield f"**{escape.markdown(explanation.headline)}**"
    if explanation.verdict:
        yield ""
        yield escape.markdown(explanation.verdict)
    if report.truncated:
        yield ""
        yield "The input breaks off inside this report: figures may be missing."
    if explanation.findings:
        yield ""
        yield from (f"- {escape.markdown(finding.text)}" for finding in explanation.findings)
    if report.space is not None:
        yield from ("", f"### {escape.markdown(totals.heading(report, report.space))}", "")
        facts = totals.totals(report, report.space)
        yield from table(
            ("", "size", "of which"),
            (
                {"": label.strip(), "size": size, "of which": escape.markdown(rest)}
                for label, size, rest in facts
            ),
            frozenset({"size"}),
        )
    if explanation.peak is not None:
        yield from _at_the_peak(explanation, explanation.peak)
    if report.allocations:
        yield from ("", f"### Who holds it ({words.listed(report)})", "")
        yield from table(_COLUMNS, _allocations(report, top), _RIGHT)
        if len(report.allocations) > top:
            yield ""
            yield f"{len(report.allocations) - top} smaller ones are left out."
    if explanation.advice:
        yield from ("", "### What to change", "")
        yield from _advice(explanation)
    yield from _small_print(explanation)


def _at_the_peak(explanation: Explanation, found: Peak) -> Iterator[str]:
    from xlamem.show import copies, owners, padded, peak

    yield from ("", "### At the peak", "")
    yield escape.markdown(
        f"{peak.where(found)[0].upper()}{peak.where(found)[1:]}. {peak.whence(found)}".rstrip()
    )
    yield from (f"- {escape.markdown(sentence)}" for sentence in peak.sentences(found))
    trees = (
        ("owner", owners.by_owner(found, everything=False)),
        ("source", owners.by_source(found, everything=False)),
    )
    for head, branches in trees:
        columns = (head, "size", "share", "padding", "known")
        yield ""
        yield from table(
            columns,
            (
                {
                    head: "&nbsp;" * 4 * row.depth + escape.markdown(row.name),
                    "size": words.size(row.bytes),
                    "share": words.percent(row.bytes, found.live),
                    "padding": words.size(row.padding),
                    "known": row.remark,
                }
                for row in branches
            ),
            frozenset(columns[1:4]),
        )
    if padded.is_worth_it(found):
        yield from ("", "Padding at the peak:", "")
        yield from table(
            ("cause", "padded", "values", "size"),
            (
                {
                    "cause": padded.cause(axis),
                    "padded": escape.markdown(axis.text),
                    "values": str(axis.count),
                    "size": words.size(axis.bytes),
                }
                for axis in padded.chosen(found, everything=False)
            ),
            frozenset({"values", "size"}),
        )
    if explanation.report.copies:
        yield ""
        yield f"Layout copies: {escape.markdown(copies.summary(explanation))}."
        for copy in copies.chosen(explanation, everything=False):
            sides = "; ".join(copies.sides(copy))
            yield f"- {words.size(copy.bytes)} {escape.markdown(f'{copies.what(copy)}: {sides}')}"


def _allocations(report: MemoryReport, top: int) -> Iterator[dict[str, str]]:
    for rank, index in enumerate(words.ranked(report)[:top], 1):
        yield {"#": str(rank), **_cells(report.allocations[index])}


def _cells(allocation: Allocation) -> dict[str, str]:
    shape = "" if allocation.shape is None else escape.markdown_code(str(allocation.shape), in_table=True)
    return {
        "size": words.size(allocation.bytes),
        "unpadded": words.size(allocation.unpadded_bytes),
        "padding": words.size(allocation.padding_bytes),
        "expansion": words.times(allocation.expansion),
        "shape": shape,
        "operator": escape.markdown(words.holder(allocation)),
        "source": escape.markdown(words.place(allocation)),
        "type": escape.markdown(allocation.kind),
        "padded axes": escape.markdown("; ".join(axis_texts(allocation.shape))),
    }


def suggestion(advice: Advice, about: str = "") -> Iterator[str]:
    """One suggestion as a list item, with what to type in a block of its own."""
    yield f"- {about}{escape.markdown(advice.text)} ({escape.markdown(words.standing(advice))})"
    if advice.how:
        yield ""
        yield from (f"  {line}" for line in escape.markdown_block(advice.how))
        yield ""


def _advice(explanation: Explanation) -> Iterator[str]:
    ranks = {index: rank for rank, index in enumerate(words.ranked(explanation.report), 1)}
    for advice in explanation.advice:
        about = f"for number {ranks[advice.about]}: " if advice.about in ranks else ""
        yield from suggestion(advice, about)


def _small_print(explanation: Explanation) -> Iterator[str]:
    report = explanation.report
    lines = [f"Note: {note}" for note in report.notes]
    lines += [f"Does not add up: {check.text}" for check in explanation.checks if not check.ok]
    lines += [f"Not understood, line {line.line}: {line.text}" for line in report.unparsed]
    if lines:
        yield ""
        yield from (f"- {escape.markdown(line)}" for line in lines)
