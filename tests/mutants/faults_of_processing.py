"""Faults of the processing phase: spouts, blocks, counts, reports, routing."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

EMISSION = "runtime/tasks/emitter_task.py"
STAGE_RUNNER = "runtime/processing/stage_runner.py"

PROCESSING = (
    Mutant(
        "counts-not-compared",
        "5 complete input",
        "A task finishes its batch whatever the counts of its sources say.",
        STAGE_RUNNER,
        "elif sent.get(run.index, {}) != held.get(run.index, {}):",
        "elif False:",
    ),
    Mutant(
        "end-of-input-proves-all",
        "5 complete input",
        "A task finishes its batch at the end of its input, also where the counts of some sources are missing.",
        STAGE_RUNNER,
        "            if missing:\n",
        "            if missing and missing == len(sources) + 1:\n",
    ),
    Mutant(
        "block-of-another-execution",
        "7 one execution",
        "What two executions of one Spark task sent to one slot is taken as one batch.",
        STAGE_RUNNER,
        "self._report.read_from.setdefault(source, block.execution) != block.execution",
        "self._report.read_from.setdefault(source, block.execution) is None",
        seeds_max=1500,
        seed=1335,
    ),
    Mutant(
        "executions-not-compared",
        "7 one execution",
        "Two slots may have read two executions of one Spark task.",
        "runtime/processing/slot_reports.py",
        "by_place[place].execution != execution",
        "by_place[place].execution is None",
    ),
    Mutant(
        "missing-report-accepted",
        "5 complete input",
        "A wave has been processed although the reports of some Spark tasks have not arrived.",
        "runtime/processing/slot_reports.py",
        "missing = [place for place in expected if place not in by_place]",
        "missing = [place for place in expected if place not in by_place and not by_place]",
    ),
    Mutant(
        "one-bolt-for-all-attempts",
        "3 attempts",
        "The attempts of a wave share one bolt object, with what it gathered.",
        "runtime/tasks/task_environment.py",
        "self._declared_bolts.get(component) or self._declared_bolt(component)\n        if plain:",
        "self._declared_bolts.get(component) or self._declared_bolt(component)\n        return declared\n        if 0:",
    ),
    Mutant(
        "python-hash-routing",
        "9 routing",
        "Keys are routed by Python's hash, which differs from process to process.",
        "runtime/tuples/canonical_form.py",
        "    return first, second\n",
        "    return hash((first, *values)) % 2**64, second\n",
    ),
    Mutant(
        "checksum-not-compared",
        "2 sameness",
        "A batch that is read again after its commit began need only have as many tuples.",
        EMISSION,
        "if not recorder.matches(stored.rows, stored.checksum):",
        "if recorder.rows != stored.rows:",
    ),
    Mutant(
        "frozen-batch-not-cut",
        "2 sameness",
        "A batch that is read again after its commit began is not cut to its stored number of tuples.",
        EMISSION,
        "Recorder(collector, self._env.registry, stored.rows)",
        "Recorder(collector, self._env.registry, 10**9)",
    ),
    Mutant(
        "position-not-moved-by-replay",
        "exactly once",
        "The batch after a frozen one in the same wave begins where the frozen one began.",
        EMISSION,
        "            self._positions[partition] = stored.metadata\n        partitions.update(mine)",
        "        partitions.update(mine)",
    ),
    Mutant(
        "vanished-partition-forgotten",
        "exactly once",
        "A partition that is away for one batch begins anew when it comes back.",
        EMISSION,
        "partitions[partition] = PartitionBatch(position, 0, gave=False)",
        "continue",
        seeds_max=1500,
    ),
    Mutant(
        "rows-left-behind",
        "5 complete input",
        "Tuples that wait in a sender's buffers when it finishes are neither sent nor counted.",
        "runtime/tasks/collector.py",
        "for route in output.routes:\n                route.flush()",
        "for route in output.routes[1:]:\n                route.flush()",
    ),
    Mutant(
        "fixed-anew-beside-old-ones",
        "2 sameness",
        "Where batches of an opaque spout are fixed anew, what defined the later of them before is left in the way.",
        "runtime/coordination/topology_runner.py",
        "self._definitions.stale_after(min(fixed), ",
        "self._definitions.stale_after(max(fixed), ",
        seeds_max=6000,
        seed=11149,
    ),
)
