"""`stormline lag`: how far a topology that reads Kafka is behind the ends of its partitions."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from stormline.cli.conf import conf_option
from stormline.cli.errors import NoKafka
from stormline.cli.held_values import WHOLE, table_text
from stormline.cli.options import format_option, state_dir_option
from stormline.cli.stored_state import stored_state
from stormline.cli.target import TARGET_HELP, load_target
from stormline.topology.compiler import compile_topology
from stormline.topology.topology import Topology

if TYPE_CHECKING:
    from stormline.spouts.kafka.lag import PartitionLag
    from stormline.spouts.kafka.spout import KafkaSpout


@click.command("lag", epilog=TARGET_HELP)
@click.argument("target", metavar="MODULE[:ATTR]")
@state_dir_option
@conf_option
@format_option
def lag_command(target: str, state_dir: Path | None, conf: dict[str, Any], form: str) -> None:
    """Show how far a topology that reads Kafka lags behind.

    For each partition: the offset up to which its transactions are committed, as ZooKeeper has it; what the spout's
    consumer group says, where it has one; the end of the log, up to which all is committed or aborted; and the offsets
    between. It only reads, and owns nothing: the topology may run meanwhile, or be stopped.

    Example: stormline lag examples.kafka_words
    """
    from stormline.runtime.cluster.state_dir import default_state_dir
    from stormline.runtime.coordination.batch_store import first_metadata, last_committed
    from stormline.runtime.tasks.spout_coordinator import described_by

    loaded = load_target(target)
    topology, config = loaded.topology, {**loaded.config, **conf}
    compile_topology(topology, config)
    spout = _spout(topology)
    with stored_state(topology, config, state_dir or default_state_dir(topology.id)) as state:
        txid, batch = last_committed(state)
        metadata = first_metadata(state) if batch is None else batch.metadata
    lags = spout.lag(topology.id, described_by(metadata), {} if batch is None else batch.positions)
    if form == "json":
        click.echo(json.dumps(_as_json(topology, spout.group_id, txid, lags), indent=2))
        return
    click.echo(_text(spout.group_id, txid, lags))


def _spout(topology: Topology) -> KafkaSpout:
    from stormline.spouts.kafka.spout import KafkaSpout

    component = topology.spout
    if not isinstance(component.obj, KafkaSpout):
        raise NoKafka(
            f"topology {topology.id!r} reads no Kafka: its spout {component.id!r} is a {type(component.obj).__name__}, "
            "expected a KafkaTransactionalSpout or an OpaqueKafkaTransactionalSpout; only those know where their "
            "sources end"
        )
    return component.obj


def _total(lags: Sequence[PartitionLag]) -> tuple[int, int]:
    """Return the offsets that are to be read, and of how many partitions that is not known."""
    return sum(one.lag or 0 for one in lags), sum(one.lag is None for one in lags)


def _text(group: str, txid: int, lags: Sequence[PartitionLag]) -> str:
    shown = {
        "topic": [one.topic for one in lags],
        "partition": [one.partition for one in lags],
        "committed": [one.committed for one in lags],
        **({f"group {group}": [one.published for one in lags]} if group else {}),
        "end": [one.end for one in lags],
        "lag": [one.lag for one in lags],
        **({"problem": [one.problem for one in lags]} if any(one.problem for one in lags) else {}),
    }
    total, unknown = _total(lags)
    lines = [table_text(list(shown), zip(*shown.values(), strict=True), WHOLE)] if lags else ["no partitions yet"]
    lines.append(
        f"lag in all: {total:,} offsets"
        + (f", and what {unknown} of {len(lags)} partitions have" if unknown else "")
        + (f"; transaction {txid} is committed" if txid else "; no transaction is committed yet")
    )
    return "\n".join(lines)


def _as_json(topology: Topology, group: str, txid: int, lags: Sequence[PartitionLag]) -> Any:
    total, unknown = _total(lags)
    return {
        "topology": topology.id,
        "spout": topology.spout.id,
        "txid_committed": txid,
        "group": group or None,
        "partitions": [asdict(one) | {"problem": one.problem or None} for one in lags],
        "lag": total,
        "partitions_unknown": unknown,
    }
