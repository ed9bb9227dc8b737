"""The schedule of the chaos runs, and what it takes for a driver's end."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

from tests.chaos import deaths
from tests.chaos.design import (
    BY_TWO_PHASES,
    INTO_KAFKA,
    INTO_POSTGRESQL,
    INTO_TWO_STORES,
    ON_DRIVER,
    ON_EXECUTORS,
    Design,
)
from tests.chaos.schedule import (
    DRIVER_KILL,
    DRIVER_STOP,
    KAFKA_KILL,
    KAFKA_LOST,
    KINDS,
    PREPARED_DRIVER_KILL,
    PREPARED_SERVER_KILL,
    PYTHON_WORKER_KILL,
    PYTHON_WORKER_STOP,
    befalls,
    draw,
)
from tests.chaos.verdict import explain
from tests.kits.components import eventually


def test_the_schedule_follows_from_seed_and_number() -> None:
    assert draw(3, 200) == draw(3, 200)
    assert draw(3, 200) != draw(4, 200)


def test_each_kind_comes_up_within_40_faults_and_about_as_often_as_it_weighs_in_the_long_run() -> None:
    for seed in range(20):
        assert {fault.kind for one in draw(seed, 40) for fault in one.faults} == {kind.name for kind in KINDS}
    decks = 30
    faults = len(KINDS) + decks * sum(kind.weight for kind in KINDS)
    times = Counter(fault.kind for one in draw(1, faults) for fault in one.faults)
    for kind in KINDS:
        assert abs(times[kind.name] - 1 - decks * kind.weight) <= 6 * kind.weight, (kind, times)


def test_no_fault_is_drawn_for_a_topology_that_has_nothing_of_it() -> None:
    kinds = {kind.name: kind for kind in KINDS}
    drawn = [(kinds[fault.kind], one.design) for one in draw(4, 1000) for fault in one.faults]
    assert all(befalls(kind, design) for kind, design in drawn)
    assert {design.sink for kind, design in drawn if kind.target == "redis"} == {INTO_TWO_STORES}
    assert {design.sink for kind, design in drawn if kind.name == KAFKA_LOST} == {INTO_KAFKA}
    assert {design.sink for kind, design in drawn if kind.target == "kafka"} == {INTO_KAFKA, INTO_POSTGRESQL}
    assert {design.sink for kind, design in drawn if kind.name.startswith("prepared-")} == {BY_TWO_PHASES}
    only = draw(4, 10, [kinds[KAFKA_KILL], kinds["redis-kill"]])
    assert {one.design.sink for one in only} <= {INTO_KAFKA, INTO_TWO_STORES, INTO_POSTGRESQL}
    assert {one.design.sink for one in draw(4, 10, [kinds[KAFKA_KILL]])} == {INTO_KAFKA, INTO_POSTGRESQL}


def test_few_faults_are_had_without_kafka_and_many_with_topologies_on_one_store() -> None:
    assert not any(one.design.uses_kafka for one in draw(5, 8))
    sinks = [one.design.sink for one in draw(5, 40)]
    assert sinks == [INTO_TWO_STORES, INTO_TWO_STORES, INTO_KAFKA, INTO_POSTGRESQL, BY_TWO_PHASES]
    without = [one.design for one in draw(5, 40, [kind for kind in KINDS if kind.target != "kafka"], has_kafka=False)]
    assert not any(design.uses_kafka for design in without)
    assert INTO_POSTGRESQL in {design.sink for design in without}


def test_a_broker_is_killed_only_where_nobody_waits_for_the_markers_of_a_commit() -> None:
    variants = {
        (one.design.sink, fault.variant) for one in draw(6, 2000) for fault in one.faults if fault.kind == KAFKA_KILL
    }
    at = {f"at {deaths.BEFORE}", f"at {deaths.WITHIN}"}
    assert variants == {(INTO_POSTGRESQL, ""), *((INTO_KAFKA, variant) for variant in at)}


def test_faults_are_numbered_through_all_rounds_and_kinds_can_be_left_out() -> None:
    numbers = [fault.number for one in draw(9, 103) for fault in one.faults]
    assert numbers == list(range(1, 104))
    kept = [kind for kind in KINDS if kind.name != DRIVER_KILL]
    assert DRIVER_KILL not in {fault.kind for one in draw(9, 103, kept) for fault in one.faults}


def test_a_kind_that_there_is_not_is_refused_before_anything_starts() -> None:
    command = [sys.executable, "-m", "tests.chaos", "--only", f"{DRIVER_KILL},zookeper-kill"]
    refused = subprocess.run(command, cwd=Path(__file__).parents[3], capture_output=True, text=True)
    assert refused.returncode == 2
    assert "argument --only: got 'driver-kill,zookeper-kill'; kinds of faults" in refused.stderr
    assert "Traceback" not in refused.stderr


def test_both_spouts_and_both_placements_are_run_and_each_pair_of_them_in_eight_rounds() -> None:
    for seed in range(10):
        two = [one.design for one in draw(seed, 15)]
        assert len({design.spout for design in two}) == len({design.placement for design in two}) == 2
        eight = [one.design for one in draw(seed, 320)]
        far = [design for design in eight if design.sink == INTO_TWO_STORES]
        assert len({(design.spout, design.placement) for design in far}) == len(far) == 4
        assert len({(design.spout, design.sink) for design in eight if design not in far}) == 4
        assert len({design.topology for design in eight}) == 8


def test_deaths_in_a_commit_are_appointed_to_the_process_that_commits() -> None:
    at_commit = {f"at {point}" for point in deaths.AT_COMMIT}
    seen = set()
    for one in draw(2, 2000):
        for fault in one.faults:
            if fault.variant in at_commit and fault.kind not in (
                KAFKA_KILL,
                PREPARED_DRIVER_KILL,
                PREPARED_SERVER_KILL,
            ):
                seen.add((fault.kind, one.design.placement))
    in_driver = {(kind, ON_DRIVER) for kind in (DRIVER_KILL, DRIVER_STOP)}
    assert seen == in_driver | {(kind, ON_EXECUTORS) for kind in (PYTHON_WORKER_KILL, PYTHON_WORKER_STOP)}


def test_a_design_survives_the_way_to_a_driver() -> None:
    design = Design("t", "opaque", "executors", partitions=5, source="kafka", sink="postgresql")
    assert Design.from_json(design.to_json()) == design


def end(error: str, cause: str = "", message: str = "") -> dict[str, str]:
    return {"error": error, "cause": cause, "message": message}


def test_a_driver_may_end_by_what_faults_do_and_by_nothing_else() -> None:
    healed: list[int] = []
    assert explain(end("SessionLost"), set(), healed.append) is None
    for error in ("AssertionError", "StateCorrupt", "SIGSEGV", "TopologyFailed", "TopologyChanged"):
        assert explain(end(error, "KeyError", "told"), set(), healed.append) == f"{error} (KeyError): told"
    poisoned = end("TopologyFailed", "Poisoned", "… Poisoned: the number 17 is poisoned …")
    assert explain(poisoned, {18}, healed.append) is not None
    assert healed == []
    assert explain(poisoned, {17}, healed.append) is None
    assert healed == [17]


def test_only_a_driver_that_was_replaced_may_be_refused_by_the_fence() -> None:
    refused = "Refused: task 0 comes with ({}, 7, 3), after (4, 7, 4)"
    assert explain(end("TopologyFailed", "Refused", refused.format(3)), set(), print) is None
    assert explain(end("TopologyFailed", "Refused", refused.format(4)), set(), print) is not None


def test_only_a_driver_that_was_replaced_may_be_refused_by_a_stores_fence() -> None:
    refused = (
        "redis://… holds transaction 7 of topology 't', stored by epoch 4, attempt 0, and this is transaction 6 of "
        "epoch {}, attempt 3, which is older: another driver has taken over, or the topology's state was removed"
    )
    assert explain(end("TopologyFailed", "StoreMismatch", refused.format(3)), set(), print) is None
    assert explain(end("TopologyFailed", "StoreMismatch", refused.format(4)), set(), print) is not None
    behind = "redis://… holds transaction 7, and the next one to commit is 9: the database was removed"
    assert explain(end("TopologyFailed", "StoreMismatch", behind), set(), print) is not None


def test_an_appointment_is_kept_once_by_whoever_comes_first(tmp_path: Path) -> None:
    deaths.meet(tmp_path, deaths.BEFORE)
    code = "import sys, pathlib; from tests.chaos import deaths; deaths.meet(pathlib.Path(sys.argv[1]), deaths.BEFORE)"
    appointment = deaths.Appointment(tmp_path, deaths.BEFORE, signal.SIGKILL)
    assert appointment.kept_by() == 0
    ends = [subprocess.run([sys.executable, "-c", code, tmp_path], timeout=60).returncode for _ in range(2)]
    assert ends == [-signal.SIGKILL, 0]
    assert appointment.kept_by() > 0
    deaths.Appointment(tmp_path, deaths.BEFORE, signal.SIGKILL).cancel()
    deaths.meet(tmp_path, deaths.BEFORE)


def test_who_keeps_an_appointment_to_be_stopped_is_told_of_once_it_stands_still(tmp_path: Path) -> None:
    code = "import sys, pathlib; from tests.chaos import deaths; deaths.meet(pathlib.Path(sys.argv[1]), deaths.WITHIN)"
    appointment = deaths.Appointment(tmp_path, deaths.WITHIN, signal.SIGSTOP)
    with subprocess.Popen([sys.executable, "-c", code, tmp_path]) as process:
        eventually(appointment.kept_by)
        assert appointment.kept_by() == process.pid
        assert process.poll() is None
        process.send_signal(signal.SIGCONT)
        assert process.wait(60) == 0
