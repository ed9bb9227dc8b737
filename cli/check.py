"""`stormline check`: reads the user's classes, and names what will not do what it seems."""

from __future__ import annotations

import json

import click

from stormline.cli.conf import conf_option
from stormline.cli.findings import text_of
from stormline.cli.options import format_option
from stormline.cli.target import TARGET_HELP, load_target
from stormline.topology.compiler import compile_topology


@click.command("check", epilog=TARGET_HELP)
@click.argument("target", metavar="MODULE[:ATTR]")
@conf_option
@format_option
@click.pass_context
def check_command(context: click.Context, /, target: str, conf: dict[str, object], form: str) -> None:
    """Name what will not do what it seems, with line and remedy.

    Builds the topology and reads the source of its bolts, coordinators and emitters; runs none of them. What
    reading cannot tell it is silent about. The exit code is 1 where something is found. docs/check.md explains
    each rule, and how a comment in the line allows what is meant.

    Example: stormline check examples.words
    """
    from stormline.cli.rules.every import check_plan  # its modules are many, and other commands do without

    loaded = load_target(target)
    plan = compile_topology(loaded.topology, {**loaded.config, **conf})
    report = check_plan(plan, loaded.module.__name__)
    if form == "json":
        findings = [finding.as_json() for finding in report.findings]
        click.echo(json.dumps({"topology": plan.topology_id, "findings": findings, "unread": report.unread}, indent=2))
    else:
        click.echo(text_of(report, plan))
    context.exit(1 if report.findings else 0)
