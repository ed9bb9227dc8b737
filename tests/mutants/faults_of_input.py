"""Further faults of what reaches a task: counts, reports, partitions, keys."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

INPUT = (
    Mutant(
        "rows-counted-by-segment",
        "5 complete input",
        "A task counts the rows of the last segment it got, not of all: one that comes twice looks whole.",
        "runtime/processing/stage_runner.py",
        "self._received.get(count, 0) + packed.rows",
        "packed.rows",
    ),
    Mutant(
        "failure-in-one-slot-forgotten",
        "5 complete input",
        "Of an attempt that failed in one slot, what the last report says counts.",
        "runtime/processing/slot_reports.py",
        "merged.failure = worse(merged.failure, part.failure)",
        "merged.failure = part.failure",
    ),
    Mutant(
        "deferred-of-one-slot-only",
        "5 complete input",
        "Of the tuples that several slots keep for one task of a commit, only the last slot's are taken.",
        "runtime/processing/slot_reports.py",
        "_together(merged.deferred.get(task), deferred)",
        "deferred",
    ),
    Mutant(
        "partitions-of-one-task-only",
        "2 sameness",
        "Of the partitions that several emitter tasks have fixed, only those of the last report are taken.",
        "runtime/processing/slot_reports.py",
        "            merged.partitions.update(part.partitions)\n",
        "            merged.partitions = part.partitions or merged.partitions\n",
    ),
    Mutant(
        "absent-partition-not-kept",
        "exactly once",
        "Where a partition stood that is gone for one batch is not kept.",
        "runtime/tasks/emitter_task.py",
        "if partition >= present and self._owns",
        "if partition > present and self._owns",
    ),
    Mutant(
        "opaque-position-stays",
        "exactly once",
        "The next batch of an opaque spout begins where this one began, in the same wave.",
        "runtime/tasks/emitter_task.py",
        "            self._positions[partition] = position\n"
        "            partitions[partition] = PartitionBatch(position, recorder",
        "            partitions[partition] = PartitionBatch(position, recorder",
    ),
    Mutant(
        "floats-routed-as-they-are",
        "9 routing",
        "A whole number that is a float is another key than the same one that is an int.",
        "runtime/tuples/canonical_form.py",
        "return int(value) if value.is_integer() else value",
        "return value",
    ),
    Mutant(
        "moments-routed-by-their-zone",
        "9 routing",
        "A moment goes where its zone's clock sends it.",
        "runtime/tuples/canonical_form.py",
        "return value.replace(fold=0) if offset is None else _in_utc(value, offset)",
        "return value.replace(tzinfo=None, fold=0)",
    ),
    Mutant(
        "decimals-routed-by-their-digits",
        "9 routing",
        "A whole number that is a Decimal is another key than the same one that is an int.",
        "runtime/tuples/canonical_form.py",
        "    if value.adjusted() <= DECIMAL_DIGITS_MAX and",
        "    if value.adjusted() > DECIMAL_DIGITS_MAX and",
    ),
)
