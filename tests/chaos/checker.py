"""The checker: compares source, ledger and state. It knows nothing of how they came about, and can say no."""

from __future__ import annotations

from collections import Counter, defaultdict

from tests.chaos.evidence import Evidence
from tests.chaos.numbers import Sums, sums_of_range

TOLD_MAX = 5
"""Violations of one kind that are told one by one."""


class _Findings:
    def __init__(self) -> None:
        self.told: list[str] = []
        self._counts: Counter[str] = Counter()

    def add(self, kind: str, text: str) -> None:
        self._counts[kind] += 1
        if self._counts[kind] <= TOLD_MAX:
            self.told.append(f"{kind}: {text}")

    def all(self) -> list[str]:
        more = [f"{kind}: {n - TOLD_MAX} more" for kind, n in self._counts.items() if n > TOLD_MAX]
        return self.told + more


def check(evidence: Evidence) -> list[str]:
    """Return every violation; nothing where each tuple counts exactly once, in the order of txids."""
    findings = _Findings()
    last = max((entry.txid for entry in evidence.entries), default=0)
    _check_order(evidence, findings, last)
    _check_ranges(evidence, findings, last)
    _check_transactions(evidence, findings)
    _check_state(evidence, findings, last)
    for store, sums in evidence.stores.items():
        for key in sorted({*evidence.source, *sums}):
            _check_key(f"key {key} of {store}", sums.get(key, Sums()), evidence.source.get(key, Sums()), findings)
    if evidence.committed != last:
        findings.add("not the end", f"ZooKeeper holds {evidence.committed} as committed, the ledger ends at {last}")
    for told in evidence.told:
        kind, _, text = told.partition(": ")
        findings.add(kind, text)
    for process in evidence.left:
        findings.add("left hanging", process)
    return findings.all()


def _check_order(evidence: Evidence, findings: _Findings, last: int) -> None:
    """Each task has each txid once; none is written before the one before it; epochs never go back."""
    times = Counter((entry.txid, entry.task) for entry in evidence.entries)
    for (txid, task), count in sorted(times.items()):
        if count > 1:
            findings.add("double", f"task {task} has applied transaction {txid} {count} times")
        if not (txid >= 1 and 0 <= task < evidence.tasks):
            findings.add("stray", f"task {task} has applied transaction {txid}")
    for txid in range(1, last + 1):
        for task in range(evidence.tasks):
            if not times[txid, task]:
                findings.add("missing", f"task {task} has not applied transaction {txid}")
    before, epoch = 0, 0
    for entry in evidence.entries:
        if entry.txid < before:
            findings.add("out of order", f"task {entry.task} applied transaction {entry.txid} after {before}")
        if entry.epoch < epoch:
            findings.add("out of order", f"epoch {entry.epoch} applied transaction {entry.txid} after epoch {epoch}")
        before, epoch = max(before, entry.txid), max(epoch, entry.epoch)
    for task in range(evidence.tasks):
        token = evidence.fence.get(task)
        if token is None or token.txid != last:
            findings.add("not the end", f"the fence of task {task} holds {token}, the ledger ends at {last}")


def _check_ranges(evidence: Evidence, findings: _Findings, last: int) -> None:
    """Each transaction takes of each partition the rows from where the one before ended, all of them."""
    by_partition = defaultdict(list)
    for taken in evidence.taken:
        by_partition[taken.partition].append(taken)
        if taken.count != taken.end - taken.first:
            findings.add("wrong rows", f"{taken} holds {taken.end - taken.first} rows, and {taken.count} arrived")
        if not 1 <= taken.txid <= last:
            findings.add("stray", f"{taken} is of no transaction of the ledger")
    for partition in range(evidence.partitions):
        end, txid = 0, 0
        for taken in sorted(by_partition.pop(partition, []), key=lambda one: (one.txid, one.first)):
            if taken.txid == txid:
                findings.add("double", f"{taken}: the transaction took of this partition before")
            if taken.first > end:
                findings.add("missing", f"rows {end} to {taken.first - 1} of partition {partition}, before {taken}")
            elif taken.first < end:
                findings.add("double", f"{taken} begins before row {end}, where the one before ended")
            end, txid = max(end, taken.end), taken.txid
        if end != evidence.rows:
            what = "missing" if end < evidence.rows else "stray"
            findings.add(what, f"partition {partition} has {evidence.rows} rows, the last row taken is {end - 1}")
    for partition in by_partition:
        findings.add("stray", f"partition {partition} does not exist")


def _check_transactions(evidence: Evidence, findings: _Findings) -> None:
    """The sums of each transaction's tasks are those of the rows that it took."""
    expected: defaultdict[int, Sums] = defaultdict(Sums)
    for taken in evidence.taken:
        expected[taken.txid] = expected[taken.txid].plus(
            sums_of_range(taken.first, taken.end, taken.partition, evidence.partitions)
        )
    found: defaultdict[int, Sums] = defaultdict(Sums)
    for entry in evidence.entries:
        found[entry.txid] = found[entry.txid].plus(entry.sums)
    for txid in sorted({*expected, *found}):
        if expected[txid] != found[txid]:
            findings.add("wrong sum", f"transaction {txid} has {found[txid]}, its rows give {expected[txid]}")


def _check_key(key: str, found: Sums, expected: Sums, findings: _Findings) -> None:
    if found.count < expected.count:
        findings.add("missing", f"{key} counts {found.count} tuples, the source has {expected.count}")
    elif found.count > expected.count:
        findings.add("double", f"{key} counts {found.count} tuples, the source has {expected.count}")
    elif found != expected:
        findings.add("wrong sum", f"{key} has {found}, the source gives {expected}")


def _check_state(evidence: Evidence, findings: _Findings, last: int) -> None:
    """Each key has the sums of the source's tuples; each task's keys together those of its ledger."""
    for key in sorted({*evidence.source, *evidence.state}):
        expected = evidence.source.get(key, Sums())
        stored = evidence.state.get(key)
        found = stored.sums if stored is not None else Sums()
        _check_key(f"key {key}", found, expected, findings)
        if stored is not None and not 1 <= stored.txid <= last:
            findings.add("stray", f"key {key} was changed by transaction {stored.txid}, the ledger ends at {last}")
    by_task: defaultdict[int, Sums] = defaultdict(Sums)
    for stored in evidence.state.values():
        by_task[stored.task] = by_task[stored.task].plus(stored.sums)
    ledger: defaultdict[int, Sums] = defaultdict(Sums)
    for entry in evidence.entries:
        ledger[entry.task] = ledger[entry.task].plus(entry.sums)
    for task in sorted({*by_task, *ledger}):
        if by_task[task] != ledger[task]:
            findings.add("wrong sum", f"task {task}: its keys hold {by_task[task]}, its ledger {ledger[task]}")
