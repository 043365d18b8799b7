"""A report with everything that can be said about it without compiling: analysis and computed advice."""

from __future__ import annotations

from xlamem.advice import advise_report
from xlamem.analysis import checks, fit, verdict
from xlamem.analysis.headline import headline
from xlamem.analysis.padding import total_padding
from xlamem.finding import Explanation
from xlamem.report import MemoryReport


def outline(report: MemoryReport) -> Explanation:
    """The headline alone, for one of many."""
    return Explanation(report, headline(report), "")


def brief(report: MemoryReport) -> Explanation:
    """The headline and the verdict, for a row of a table of many."""
    if _has_values(report):
        return explain(report)
    return Explanation(report, headline(report), verdict.sentence(report, verdict.findings(report)))


def explain(report: MemoryReport) -> Explanation:
    """The verdict on ``report``, the checks between its figures, where it would fit, and what to change."""
    at_peak = None
    whole = None
    if _has_values(report):
        # What only dumps and modules need.
        from xlamem.analysis.peak import peak
        from xlamem.analysis.timeline import expanded

        whole, at_peak, report = report, peak(report), expanded(report)
    findings = verdict.findings(report)
    return Explanation(
        report=report,
        headline=headline(report),
        verdict=verdict.sentence(report, findings),
        findings=findings,
        checks=checks.run(report),
        fits=fit.fits(report),
        advice=advise_report(report),
        padding=total_padding(report),
        peak=at_peak,
        whole=whole,
    )


def _has_values(report: MemoryReport) -> bool:
    """Whether it comes from a dump or a module."""
    return bool(report.timelines) or any(allocation.buffers for allocation in report.allocations)
