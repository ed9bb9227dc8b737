"""What `stormline check`, `run` and `submit` print of what reading a user's classes found."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from stormline.topology.plan import Plan

if TYPE_CHECKING:
    from stormline.cli.rules.every import Report

SHOWN_MAX = 10


def print_findings(plan: Plan, target: str, module: str) -> None:
    """Print the first findings of a topology that is about to run, on standard error, each remedy once; else nothing.

    They stop nothing, and neither does a mistake in the reading.
    """
    from stormline.cli.rules.every import check_plan  # its modules are many, and other commands do without

    try:
        findings = check_plan(plan, module).findings
    except Exception as error:  # of ours: the user's topology can do without
        click.echo(f"not checked: {type(error).__name__} while reading ({error}); please report it", err=True)
        return
    told: set[str] = set()
    for finding in findings[:SHOWN_MAX]:
        click.echo(finding.text(remedy=finding.rule not in told), err=True)
        told.add(finding.rule)
    if findings:
        more = f", the first {SHOWN_MAX} of them above" if len(findings) > SHOWN_MAX else ""
        click.echo(f"{counted(len(findings))}{more}; it runs all the same: see `stormline check {target}`", err=True)


def text_of(report: Report, plan: Plan) -> str:
    """Return all that was found, what could not be read, and how many findings there are."""
    lines = [finding.text() for finding in report.findings]
    lines += [f"note: {sentence}" for sentence in report.unread]
    count = counted(len(report.findings)) if report.findings else "no findings"
    return "\n".join([*lines, f"{count} in topology {plan.topology_id!r}, {len(plan.components)} components"])


def counted(number: int) -> str:
    """Return a number of findings as one says it."""
    return "1 finding" if number == 1 else f"{number} findings"
