"""`stormline audit`: works out once more what a topology has stored, and names what differs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from stormline.cli.conf import conf_option
from stormline.cli.held_values import as_json, table_text
from stormline.cli.options import format_option, state_dir_option
from stormline.cli.stored_state import stored_state
from stormline.cli.target import TARGET_HELP, load_target
from stormline.topology.compiler import compile_topology

if TYPE_CHECKING:
    from stormline.runtime.audit.audit import AuditReport

SHOWN_MAX = 20


@click.command("audit", epilog=TARGET_HELP)
@click.argument("target", metavar="MODULE[:ATTR]")
@state_dir_option
@conf_option
@format_option
@click.pass_context
def audit_command(
    context: click.Context, /, target: str, state_dir: Path | None, conf: dict[str, Any], form: str
) -> None:
    """Work out once more what a topology has stored, and name what differs.

    Reads all committed batches again, in this process, works out the values of the maps, and compares them with what
    the stores hold. It changes nothing, neither there nor in ZooKeeper, and the topology may run meanwhile. The exit
    code is 1 where a row differs. docs/state.md says which topologies can be audited.

    Example: stormline audit examples.stored_words
    """
    from stormline.runtime.audit.audit import audit  # other commands do without
    from stormline.runtime.audit.auditable_part import auditable_part
    from stormline.runtime.cluster.state_dir import default_state_dir

    loaded = load_target(target)
    config = {**loaded.config, **conf}
    compile_topology(loaded.topology, config)
    auditable_part(loaded.topology)  # what cannot be audited shows before anything starts
    with stored_state(loaded.topology, config, state_dir or default_state_dir(loaded.topology.id)) as state:
        report = audit(loaded.topology, config, state)
    click.echo(json.dumps(_as_json(report), indent=2) if form == "json" else _text(report))
    context.exit(1 if report.differ else 0)


def _text(report: AuditReport) -> str:
    lines = []
    for table in report.tables:
        where = f"table {table.table!r} of {table.store}, at transaction {table.txid}"
        if not table.differences:
            lines.append(f"{where}: all {table.rows:,} rows are as worked out")
            continue
        lines.append(f"{where}: {len(table.differences):,} of {table.rows:,} rows differ")
        shown = [(one.key, one.stored, one.recomputed) for one in table.differences[:SHOWN_MAX]]
        lines += [f"  {line}" for line in table_text(["key", "stored", "worked out"], shown).splitlines()]
        if len(table.differences) > SHOWN_MAX:
            lines.append(f"  and {len(table.differences) - SHOWN_MAX:,} more; --format json names them all")
    lines += [f"not audited: {why}" for why in report.left_out.values()]
    return "\n".join(lines)


def _as_json(report: AuditReport) -> Any:
    tables = [
        {
            "store": table.store,
            "table": table.table,
            "txid": table.txid,
            "rows": table.rows,
            "differences": [
                {"key": as_json(one.key), "stored": as_json(one.stored), "worked_out": as_json(one.recomputed)}
                for one in table.differences
            ],
        }
        for table in report.tables
    ]
    return {"topology": report.topology, "tables": tables, "left_out": dict(report.left_out)}
