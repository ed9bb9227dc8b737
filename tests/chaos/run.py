"""One run: starts the cluster, lets topologies run while faults are injected, and has the checker judge."""

from __future__ import annotations

import threading
import time
import uuid
from collections import Counter
from collections.abc import Sequence, Set
from concurrent.futures import Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

import psycopg

from tests.chaos.checker import check
from tests.chaos.cluster import Cluster
from tests.chaos.design import FROM_KAFKA, INTO_KAFKA, INTO_TWO_STORES, Design
from tests.chaos.evidence import committed_in_zookeeper
from tests.chaos.injector import Hanging, Injector
from tests.chaos.kafka_feed import KafkaFeed
from tests.chaos.numbers import Sums, sums_by_key
from tests.chaos.order import OrderWatch
from tests.chaos.prepared import PreparedResults
from tests.chaos.processes import describe, end_all, marked, wait_until
from tests.chaos.report import Happened, Report
from tests.chaos.results import Away, Results
from tests.chaos.schedule import KINDS, Fault, Round, draw
from tests.chaos.stores import stored_sums
from tests.chaos.supervisor import Life, Supervisor
from tests.chaos.verdict import explain
from tests.chaos.watch import Feeder, Watch

PATIENCE_SECS = 45.0
"""Time for a recovery before the next fault comes all the same."""

PREPARED_SECS = 60.0
"""Time for the topology to sweep what is prepared, once all is committed."""

STALL_SECS = 180.0
"""Time without a commit, when no fault is about any more, that is a violation."""

UNSEEN_SECS = 0.2
"""Time in which a commit may be seen that was there before the fault ended."""

OVERLAPPING_MAX = 3
DRAIN_TAKE = 2500
LEFT_SECS = 60.0
VIOLATIONS_TOLD = 10

ORDER_LOOKS_MIN = 50
"""How often the order must have been looked at in a run: that takes seconds, and a million tuples take a minute."""


class Run:
    """A run in a folder; `go` returns whether nothing was violated."""

    def __init__(self, folder: Path, report: Report, tuples: int, tuples_per_sec: int, minutes: float) -> None:
        self._ends_at = 60 * minutes
        self._mark = uuid.uuid4().hex
        self._report = report
        self._tuples = tuples
        self._cluster = Cluster(folder, self._mark)
        self._supervisor = Supervisor(folder, self._cluster.env, self._explain)
        self._watch = Watch()
        self._injector = Injector(self._cluster, self._supervisor, self._watch)
        self._order = OrderWatch(self._cluster.zookeeper.hosts)
        self._feeder = Feeder(self._cluster.source, self._watch, tuples_per_sec)
        self._targets = {kind.target: threading.Lock() for kind in KINDS}
        self._pool = ThreadPoolExecutor(OVERLAPPING_MAX + 1, thread_name_prefix="fault")
        self._details: Counter[str] = Counter()

    def go(self, seed: int, faults: int, only: Set[str]) -> bool:
        """Run to the end, with faults of the kinds named by `only`."""
        kinds, skipped = self._injector.available()
        kinds = [kind for kind in kinds if kind.name in only]
        for kind, why in skipped.items():
            if kind in only:
                self._report.line(skipped=kind, why=why)
        try:
            # The pool starts the services: what it starts dies with its threads, and they live as long as this.
            rounds = draw(seed, faults, kinds, has_kafka=not self._cluster.kafka.cannot_start)
            self._pool.submit(self._cluster.start, any(one.design.uses_kafka for one in rounds)).result()
            self._supervisor.start()
            self._rounds(rounds)
            self._end_drivers()
        finally:
            self._stop()
        print(self._report.table(
            self._supervisor.ends, self._supervisor.takeovers, self._supervisor.replays, dict(self._details)
        ))  # fmt: skip
        return not self._report.violations

    def _rounds(self, rounds: Sequence[Round]) -> None:
        for one in rounds:
            self._round(one)
            if self._late() or self._report.violations or self._supervisor.violations or self._order.violations:
                break

    def _late(self) -> bool:
        """Tell that the time for faults is over."""
        return self._report.secs() > self._ends_at

    def _explain(self, life: Life, end: dict[str, Any]) -> str | None:
        return explain(end, self._injector.poisoned, self._injector.heal)

    # ------------------------------------------------------------------------------------ one round

    def _round(self, one: Round) -> None:
        design = one.design
        self._report.line(
            round=design.topology,
            spout=design.spout,
            placement=design.placement,
            source=design.source,
            sink=design.sink,
        )
        self._cluster.make_fences(design)
        self._injector.design = design
        results = self._cluster.results_of(design)
        self._watch.follow(results)
        self._order.follow(design, results)
        feed = KafkaFeed(self._cluster.kafka, self._cluster.source, design) if design.source == FROM_KAFKA else None
        try:
            self._run(one, results)
        finally:
            self._feeder.feed(None)
            results.close()
            if feed is not None:
                feed.stop()

    def _run(self, one: Round, results: Results) -> None:
        """Let one topology run, break it, let it come to its end, and judge."""
        design = one.design
        self._feeder.feed(design)
        self._supervisor.drive(design)
        wait_until(lambda: self._watch.txid or self._supervisor.violations, 2 * STALL_SECS)
        if not self._watch.txid:
            self._report.violation(f"{design.topology} has committed nothing within {2 * STALL_SECS:.0f} s")
            return
        self._inject(one.faults)
        rows = self._drain(design, results)
        if rows is None:
            return
        if isinstance(results, PreparedResults):
            self._see_nothing_prepared(results)
        self._supervisor.rest()
        if not wait_until(lambda: not self._supervisor.fallen(), 2 * LEFT_SECS):
            names = [life.number for life in self._supervisor.fallen()]
            self._report.violation(f"drivers {names} were replaced long ago and have not ended")
        self._judge(design, results, rows)

    def _see_nothing_prepared(self, results: PreparedResults) -> None:
        """See the driver sweep what nobody will ever commit; zombies, which would prepare more, have ended by then."""
        wait_until(lambda: not self._supervisor.fallen(), 2 * LEFT_SECS)
        if not wait_until(lambda: not results.prepared(), PREPARED_SECS):
            self._report.violation(f"left prepared: {results.prepared()}")

    def _inject(self, faults: tuple[Fault, ...]) -> None:
        running: set[Future[None]] = set()
        for fault in faults:
            if self._late():
                break
            running = {future for future in running if not future.done()}
            if not fault.overlaps or len(running) >= OVERLAPPING_MAX:
                wait(running)
            time.sleep(fault.gap_secs)
            running.add(self._pool.submit(self._break, fault))
        for future in running:
            future.result()

    def _break(self, fault: Fault) -> None:
        """Inject one fault, and see the topology recover."""
        with self._targets[fault.target]:
            at, txid, begun = self._report.secs(), self._watch.txid, time.monotonic()
            try:
                what = self._injector.inject(fault)
            except Hanging as hanging:
                what = str(hanging)
                self._report.violation(what)
            except Exception as error:
                what = f"the harness failed: {error!r}"
                self._report.violation(f"{fault.kind}: {what}")
            ended = time.monotonic()
        time.sleep(UNSEEN_SECS)
        recovered = self._watch.wait_beyond(self._watch.txid, PATIENCE_SECS)
        recovered_secs = round(time.monotonic() - ended, 2) if recovered else None
        self._report.fault(Happened(fault, at, txid, round(ended - begun, 2), recovered_secs, what))

    def _drain(self, design: Design, results: Results) -> int | None:
        """Let the topology commit all there is, and return how many rows a partition has."""
        self._feeder.feed(None)
        rows_min = -(-self._tuples // design.partitions)
        source = self._cluster.source.change(
            lambda source: {"rows": max(source.rows, rows_min), "take": DRAIN_TAKE, "gone": [], "poison": [],
                            "failing": []}
        )  # fmt: skip
        self._watch.advanced = time.monotonic()
        wanted = source.rows * design.partitions
        while (counted := self._counted(results)) < wanted:
            if time.monotonic() - self._watch.advanced > STALL_SECS:
                self._report.violation(
                    f"{design.topology} hangs at transaction {self._watch.txid}: nothing committed for "
                    f"{STALL_SECS:.0f} s though no fault was about; {counted} of {wanted} tuples"
                )
                return None
            time.sleep(0.2)
        return source.rows

    def _counted(self, results: Results) -> int:
        try:
            return results.look().tuples
        except Away:
            return 0

    def _judge(self, design: Design, results: Results, rows: int) -> None:
        committed = committed_in_zookeeper(self._cluster.zookeeper.hosts, design.topology)
        source = sums_by_key(rows * design.partitions)
        evidence = results.evidence(rows, source, committed, self._stored(design))
        violations = check(evidence)
        self._report.violation(*(f"{design.topology}: {text}" for text in violations))
        self._report.transactions += committed
        self._report.tuples += rows * design.partitions
        with psycopg.connect(self._cluster.postgresql.dsn()) as db:
            for table, what in (("skips", "commits found done"), ("refusals", "commits refused by the fence")):
                row = db.execute(f"SELECT count(*) FROM {table} WHERE topology = %s", (design.topology,)).fetchone()
                self._details[what] += row[0] if row else 0
        groups = {size: count for size, count in sorted(results.groups().items()) if size > 1}
        if design.group_max > 1:
            self._details["groups of transactions"] += sum(groups.values())
            self._details["transactions in groups"] += sum(size * count for size, count in groups.items())
        elif groups:
            self._report.violation(f"{design.topology}: transactions became durable together: {groups}")
        self._report.line(
            checked=design.topology,
            transactions=committed,
            tuples=rows * design.partitions,
            groups=groups,
            violations=len(violations),
        )

    def _stored(self, design: Design) -> dict[str, dict[int, Sums]]:
        """Return what Stormline's own maps hold, in the stores that this topology writes to."""
        places = self._cluster.stores()
        if design.sink == INTO_KAFKA:
            return {}
        return stored_sums(
            design.topology, places if design.sink == INTO_TWO_STORES else {"postgresql": places["postgresql"]}
        )

    # ------------------------------------------------------------------------------------ the end

    def _end_drivers(self) -> None:
        """End the drivers, and see that nothing of theirs is left."""
        self._supervisor.stop()
        own = self._cluster.own_pids
        wait_until(lambda: not [p for p in marked(self._mark) if p.pid not in own()], LEFT_SECS, 0.2)
        left = [describe(process) for process in marked(self._mark) if process.pid not in own()]
        self._report.violation(*(f"left hanging: {name}" for name in left))

    def _stop(self) -> None:
        """End everything, whatever the state it is in."""
        self._feeder.stop()
        self._watch.stop()
        self._order.stop()
        self._report.violation(*self._order.violations[:VIOLATIONS_TOLD])
        if self._report.tuples and self._order.looks < ORDER_LOOKS_MIN:
            self._report.violation(f"ledger and ZooKeeper were compared {self._order.looks} times only")
        self._details["comparisons of ledger and ZooKeeper meanwhile"] = self._order.looks
        try:
            self._supervisor.stop()
        finally:
            self._report.violation(*self._supervisor.violations)
            try:
                self._cluster.stop()
            finally:
                left = end_all(self._mark)
                self._pool.shutdown(wait=False)
                self._report.line(ended_by_force=left)
