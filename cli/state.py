"""`stormline state`: what a store's maps hold."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, TypeVar

import click

from stormline.cli.held_values import WHOLE, as_json, as_text, columns_of, table_text
from stormline.cli.options import format_option
from stormline.cli.usage import CommandGroup
from stormline.state.inspection import Inspection
from stormline.state.store_url import store_at

URL_HELP = """\
URL is sqlite:PATH, postgresql://USER@HOST/DATABASE, postgresql:DSN, mysql://USER@HOST/DATABASE, mariadb://… or
redis://HOST/0, without a password.
"""
ROWS_MAX = 100

_Command = TypeVar("_Command", bound=Callable[..., Any])


def _of_a_store(command: _Command) -> _Command:
    for option in (
        format_option,
        click.option(
            "--password", default="", metavar="REFERENCE", help="Where the password is: env:NAME or file:PATH."
        ),
    ):
        command = option(command)
    return command


@click.group("state", cls=CommandGroup, no_args_is_help=False, epilog=URL_HELP)
def state_group() -> None:
    """Show what the maps of a store hold. Changes nothing there.

    Example: stormline state tables sqlite:.stormline/stored-words.sqlite
    """


@state_group.command("tables", epilog=URL_HELP)
@click.argument("url")
@_of_a_store
def tables_command(url: str, password: str, form: str) -> None:
    """Name the tables of a store's maps, and the last transaction of each topology.

    Example: stormline state tables sqlite:.stormline/stored-words.sqlite
    """
    with Inspection.of(store_at(url, password)) as seen:
        tables = [
            {"table": name, "rows": seen.count(held.table), "topology": held.topology, "map": held.table.described()}
            for name, held in seen.tables().items()
        ]
        fences = [
            {"topology": topology, "scope": scope, "txid": fence.txid, "epoch": fence.epoch}
            for topology in seen.topologies()
            for scope, fence in sorted(seen.fences(topology).items())
        ]
    if form == "json":
        click.echo(json.dumps({"tables": tables, "stored": fences}, indent=2))
        return
    if not tables:
        click.echo("no map has stored here")
    for title in (tables, fences):
        if title:
            click.echo(table_text(list(title[0]), [list(one.values()) for one in title], WHOLE))


@state_group.command("list", epilog=URL_HELP)
@click.argument("url")
@click.argument("table")
@click.option(
    "--rows",
    "rows_max",
    type=click.IntRange(min=1),
    default=ROWS_MAX,
    show_default=True,
    help="How many rows to show at most, the first ones by their key; of Redis, which has no order, any.",
)
@_of_a_store
def list_command(url: str, table: str, rows_max: int, password: str, form: str) -> None:
    """List the rows of a map's table: key, value, and the transaction that stored it.

    Example: stormline state list sqlite:.stormline/stored-words.sqlite words
    """
    with Inspection.of(store_at(url, password)) as seen:
        held = seen.table(table).table
        rows = [columns_of(held, key, row) for key, row in seen.rows(held, rows_max).items()]
        count = seen.count(held)
    if form == "json":
        click.echo(json.dumps([as_json(row) for row in rows], indent=2))
        return
    header = max(map(list, rows), key=len) if rows else [column.name for column in (*held.key, *held.value)]
    click.echo(table_text(header, [[row.get(name) for name in header] for row in rows]))
    if count > len(rows):
        click.echo(f"the first {len(rows):,} of {count:,} rows; --rows shows more")


@state_group.command("get", epilog=URL_HELP)
@click.argument("url")
@click.argument("table")
@click.argument("key", nargs=-1, required=True)
@_of_a_store
def get_command(url: str, table: str, key: tuple[str, ...], password: str, form: str) -> None:
    """Show one row of a map's table by its key, one value a column.

    The exit code is 1 where the table holds nothing under it. Bytes are given as hexadecimal digits, times as ISO 8601.

    Example: stormline state get sqlite:.stormline/stored-words.sqlite words apple
    """
    with Inspection.of(store_at(url, password)) as seen:
        held = seen.table(table).table
        row = columns_of(held, *seen.row(held, key))
    if form == "json":
        click.echo(json.dumps(as_json(row), indent=2))
        return
    width = max(map(len, row))
    for name, value in row.items():
        click.echo(f"{name.ljust(width)}  {as_text(value)}")
