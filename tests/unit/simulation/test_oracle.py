"""The oracle can fail: each law is broken on purpose, by hand, and it notices.

Laws by number, as docs/laws.md has them: law 1 (order), law 2 (sameness), law 3 (attempts), law 5 (complete input),
law 6 (fencing), law 7 (one execution), law 9 (routing).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any, cast

import pytest

from stormline.runtime.messages.wave import Wave, WaveAttempt
from stormline.runtime.state.stored_value import seal
from stormline.topology.attempt import TransactionAttempt
from stormline.topology.serialization import PLAIN
from tests.simulation.databases import Cell, Databases, Request, Row, Token
from tests.simulation.oracle import NODE, Oracle
from tests.simulation.proofs import Proofs
from tests.simulation.scheduler import Process
from tests.simulation.sinks import SinkServer
from tests.simulation.source import Source
from tests.simulation.world import World
from tests.simulation.zookeeper import Change, Node, ZooKeeper

LIVING = SimpleNamespace(name="driver 1", alive=True)

ROWS: tuple[Row, ...] = ((0, 0, 0), (0, 1, 0))

pytestmark = pytest.mark.usefixtures("quiet")


@pytest.fixture
def oracle() -> Iterator[Oracle]:
    with World(1, faults_on=False) as world:
        world.source = Source(world.faults)
        world.source.ends = [2]
        world.databases = Databases(world)
        world.sinks = SinkServer(world)
        world.oracle = Oracle(world, 2, "opaque", placed=True)
        world.zookeeper = ZooKeeper(world, world.oracle.applied)
        claim(world.oracle, 1, session=7)
        yield world.oracle


def put(path: str, value: Any) -> Change:
    return Change(f"{NODE}/{path}", b"", seal(value, PLAIN))


def owner(epoch: int, token: str = "") -> Change:
    return put("owner", {"epoch": epoch, "token": token or f"of {epoch}", "writes": 0})


def claim(oracle: Oracle, epoch: int, session: int) -> None:
    oracle.applied(session, [owner(epoch), put("live", {})])


def batch(first: int = 0, end: int = 2, fixed: bool = True) -> dict[str, Any]:
    return {"metadata": None, "fixed": fixed, "rows": 2, "partitions": [[0, [first, end], end - first, 0, True]]}


def write(oracle: Oracle, *changes: Change) -> None:
    oracle.applied(7, [owner(1), *changes])


def request(table: str, txid: int = 1, rows: tuple[Row, ...] = ROWS, attempt: int = 1) -> Request:
    return Request(table, "all", Token(1, txid, attempt), rows)


def commit_all(oracle: Oracle, tables: tuple[str, ...] = ("keyed", "total", "ledger"), txid: int = 1) -> None:
    for table in tables:
        oracle._world.databases.apply(request(table, txid))


def committed(oracle: Oracle, txid: int = 1) -> None:
    write(oracle, put("state/committed", {"txid": txid, "attempt": 1}))


def stored(oracle: Oracle, txid: int = 1, **options: Any) -> None:
    write(oracle, put(f"state/batches/{txid:012}", batch(**options)))


def test_what_is_right_passes(oracle: Oracle) -> None:
    stored(oracle)
    commit_all(oracle)
    committed(oracle)
    assert oracle.drained()
    oracle.check_databases()
    assert oracle.violation is None


def a_commit_out_of_order(oracle: Oracle) -> None:
    committed(oracle, 2)


def an_effect_before_the_record(oracle: Oracle) -> None:
    stored(oracle)
    stored(oracle, 2, first=2, end=4)
    oracle.effect(request("total", txid=2))


def a_commit_that_begins_early(oracle: Oracle) -> None:
    oracle.commit_begins("total", 0, Token(1, 2, 1), 7)


def a_commit_without_its_effects(oracle: Oracle) -> None:
    stored(oracle)
    commit_all(oracle, ("keyed", "total"))
    committed(oracle)


def an_effect_before_its_batch_is_fixed(oracle: Oracle) -> None:
    stored(oracle, fixed=False)
    oracle.effect(request("total"))


def another_batch_after_an_effect(oracle: Oracle) -> None:
    stored(oracle)
    commit_all(oracle)
    stored(oracle, end=3)


def other_rows_after_an_effect(oracle: Oracle) -> None:
    stored(oracle)
    oracle.effect(request("total"))
    oracle.effect(request("total", rows=ROWS[:1], attempt=2))


def another_edition_after_an_effect(oracle: Oracle) -> None:
    stored(oracle)
    oracle.effect(request("total"))
    oracle.effect(request("total", rows=((0, 0, 1), (0, 1, 0)), attempt=2))


def the_batch_is_cleaned_up_with_its_commit(oracle: Oracle) -> None:
    stored(oracle)
    commit_all(oracle)
    write(oracle, put("state/committed", {"txid": 1}), Change(f"{NODE}/state/batches/{1:012}", b"", None))


def a_gap(oracle: Oracle) -> None:
    stored(oracle, first=1)
    for table in ("keyed", "total", "ledger"):
        oracle._world.databases.apply(request(table, rows=ROWS[1:]))
    committed(oracle)


def an_attempt_that_returns(oracle: Oracle) -> None:
    wave = Wave(1, (WaveAttempt(TransactionAttempt(1, 1), None),))
    oracle.wave(1, wave)
    claim(oracle, 2, session=8)
    oracle.wave(2, wave)


def a_wave_of_too_many(oracle: Oracle) -> None:
    oracle.wave(1, Wave(1, tuple(WaveAttempt(TransactionAttempt(txid, 1), None) for txid in (1, 2, 3))))


def a_write_of_a_zombie(oracle: Oracle) -> None:
    claim(oracle, 2, session=8)
    stored(oracle)


def a_write_of_the_owner_in_another_session(oracle: Oracle) -> None:
    oracle.applied(9, [owner(1), put(f"state/batches/{1:012}", batch())])


def a_write_that_leaves_the_epoch_unchecked(oracle: Oracle) -> None:
    oracle.applied(7, [put(f"state/batches/{1:012}", batch())])


def a_claim_from_a_driver_that_lives(oracle: Oracle) -> None:
    session = oracle._world.zookeeper.connect(None, 2.0, SimpleNamespace(client=SimpleNamespace(process=LIVING)))
    assert session is not None
    claim(oracle, 2, session)
    oracle.applied(8, [owner(3), Change(f"{NODE}/live", b"", None), put("live", {})])


def user_code_for_an_attempt_that_was_replaced(oracle: Oracle) -> None:
    oracle.wave(1, Wave(1, (WaveAttempt(TransactionAttempt(1, 2), None),)))
    oracle.audit(TransactionAttempt(1, 1), {})


def rows_of_two_executions(oracle: Oracle) -> None:
    stored(oracle)
    commit_all(oracle, ("keyed", "total"))
    oracle._world.databases.apply(request("ledger", rows=((0, 0, 1), (0, 1, 0))))
    committed(oracle)


def a_claim_of_an_old_epoch(oracle: Oracle) -> None:
    claim(oracle, 1, session=8)


def a_commit_that_is_asked_for_twice(oracle: Oracle) -> None:
    for _ in range(2):
        oracle.commit_begins("ledger", 0, Token(1, 1, 1), 7)


def a_second_attempt_under_another_commit_id(oracle: Oracle) -> None:
    oracle.commit_begins("ledger", 0, Token(1, 1, 1), 7)
    oracle.commit_begins("ledger", 0, Token(1, 1, 2), 8)


def a_commit_under_an_id_that_is_not_stored(oracle: Oracle) -> None:
    write(oracle, put(f"state/batches/{1:012}", {**batch(), "commit_id": 8}))
    oracle.commit_begins("ledger", 0, Token(1, 1, 1), 7)


def a_later_half_that_is_written_first(oracle: Oracle) -> None:
    stored(oracle, 2)


def a_batch_that_is_fixed_before_the_one_before_it(oracle: Oracle) -> None:
    stored(oracle, 1, fixed=False)
    stored(oracle, 2)


def two_batches_by_one_commit_id(oracle: Oracle) -> None:
    stored(oracle)
    before = oracle.backup()
    oracle.effect(request("total"))
    oracle.set_back((before[0], {}, *before[2:]))
    stored(oracle)
    oracle.effect(request("total", rows=ROWS[:1]))


def a_key_that_goes_elsewhere(oracle: Oracle) -> None:
    oracle.routed(1, 0)
    oracle.routed(1, 1)


def a_batch_that_comes_again_without_the_one_before_it(oracle: Oracle) -> None:
    oracle.emits(TransactionAttempt(3, 1), cleaned=3, kept={3})


def an_emitter_that_keeps_everything(oracle: Oracle) -> None:
    oracle.emits(TransactionAttempt(8, 1), cleaned=1, kept=set(range(1, 9)))


def a_driver_that_is_certain_after_anothers_claim(oracle: Oracle) -> None:
    oracle.certain(session=6, connected_at=1.0)


def a_driver_that_goes_by_what_was(oracle: Oracle) -> None:
    oracle.looks(behind_secs=5.0)


def commits_begin(oracle: Oracle, proof_sent_at: float, connected_at: float = 0.0) -> None:
    """Let a commit begin at 5 s, in a thread of a driver whose client knows what is given."""
    world = oracle._world
    driver = Process(world, "driver 1")
    proofs = Proofs(driver)
    proofs.sent_at = proof_sent_at
    world.clients = cast(Any, Clients(SimpleNamespace(suspended_at=None, connected_at=connected_at, proofs=proofs)))
    oracle._placed = False
    world.after(
        5.0, lambda: world.spawn(driver, lambda: oracle.commit_begins("ledger", 0, Token(1, 1, 1), 7), "commit")
    )
    world.run(lambda: bool(oracle._begun), 6.0)


class Clients(dict[Any, Any]):
    """One client for all processes."""

    def __init__(self, client: Any) -> None:
        self.client = client

    def __missing__(self, process: Any) -> Any:
        return self.client


def a_commit_by_an_old_proof(oracle: Oracle) -> None:
    commits_begin(oracle, proof_sent_at=4.0)


def a_commit_of_a_driver_that_connected_after_anothers_claim(oracle: Oracle) -> None:
    oracle._world.now = 4.5
    claim(oracle, 2, session=8)
    oracle._world.now = 0.0
    commits_begin(oracle, proof_sent_at=4.9, connected_at=4.8)


def more_and_more_batches(oracle: Oracle) -> None:
    for txid in range(1, 7):
        oracle.committed = txid
        stored(oracle, txid)


def znodes_that_nobody_deletes(oracle: Oracle) -> None:
    for n in range(10):
        oracle._world.zookeeper.nodes[f"{NODE}/state/litter/{n}"] = Node(b"")
    stored(oracle, 1)


def too_many_active(oracle: Oracle) -> None:
    stored(oracle, 3)


def an_audit_that_lacks_a_task(oracle: Oracle) -> None:
    oracle.audit(TransactionAttempt(1, 1), {"keyed": [1], "total": [1], "ledger": [1]})


def rows_that_are_doubled(oracle: Oracle) -> None:
    for table in ("keyed", "total", "ledger"):
        oracle._world.databases.cells[(table, "all")] = Cell((*ROWS, ROWS[0]))
    oracle.check_databases()


@pytest.mark.parametrize(
    ("break_it", "law"),
    [
        (a_commit_out_of_order, "law 1: 2 is recorded after 0"),
        (an_effect_before_the_record, "law 1: an effect of"),
        (a_commit_that_begins_early, "law 1: the commit of"),
        (a_commit_without_its_effects, "law 5: 1 is committed with"),
        (an_effect_before_its_batch_is_fixed, "law 2: an effect of"),
        (another_batch_after_an_effect, "law 2: batch 1 was stored anew"),
        (other_rows_after_an_effect, "law 2: .* brings"),
        (another_edition_after_an_effect, "law 2: .* brings"),
        (the_batch_is_cleaned_up_with_its_commit, "law 2: batch 1, the last committed one, is not stored"),
        (a_gap, "law 2: batch 1 is stored to begin at 1 of partition 0, the one before ends at 0"),
        (an_attempt_that_returns, "law 3: attempt 1 of 1 after attempt 1"),
        (a_wave_of_too_many, "pending: 3 transactions"),
        (a_write_of_a_zombie, "law 6: epoch 1 wrote, 2 owns"),
        (a_write_of_the_owner_in_another_session, "law 6: epoch 1 wrote, 1 owns"),
        (a_write_that_leaves_the_epoch_unchecked, "law 6: a write that does not check the epoch"),
        (a_claim_from_a_driver_that_lives, "law 6: the topology is taken from epoch 2, whose driver 1 lives"),
        (user_code_for_an_attempt_that_was_replaced, "law 3: the commit of 1:1 goes on, the current attempt is 2"),
        (rows_of_two_executions, "law 7: 1 is committed with rows of several executions"),
        (a_claim_of_an_old_epoch, "law 6: epoch 1 follows 1"),
        (a_commit_that_is_asked_for_twice, "law 7: ledger 0 is asked twice"),
        (a_commit_under_an_id_that_is_not_stored, "law 2: .* another id than the one that is stored with its batch"),
        (a_later_half_that_is_written_first, "law 2: batch 1 is not stored, later ones are"),
        (a_batch_that_is_fixed_before_the_one_before_it, "law 2: batch 2 is stored as fixed, the one before is not"),
        (
            two_batches_by_one_commit_id,
            "law 2: .* other rows by the commit id of a batch before the state was set back",
        ),
        (a_key_that_goes_elsewhere, "law 9: key 1 is routed to task 1, and was to 0"),
        (a_batch_that_comes_again_without_the_one_before_it, "cleanup: 3:1 is emitted when all before 3 was discarded"),
        (an_emitter_that_keeps_everything, "bounded: an emitter keeps 8 batches"),
        (a_driver_that_is_certain_after_anothers_claim, "law 6: a driver is certain that it owns the topology"),
        (a_driver_that_goes_by_what_was, "law 6: a driver goes by who lived 5.0 s before"),
        (a_commit_by_an_old_proof, "law 6: .* the last proof of its ownership is too old"),
        (a_commit_of_a_driver_that_connected_after_anothers_claim, "law 6: .* connected after another one's claim"),
        (more_and_more_batches, "bounded: 6 batches"),
        (znodes_that_nobody_deletes, r"bounded: beside batches there are .*state/litter/9"),
        (too_many_active, "pending: batch 3 is stored, 0 is committed"),
        (an_audit_that_lacks_a_task, "law 5: the commit phase"),
        (rows_that_are_doubled, "exactly once: keyed lacks .* and holds .*0, 0.* more than once"),
    ],
)
def test_a_broken_law_is_noticed(oracle: Oracle, break_it: Callable[[Oracle], None], law: str) -> None:

    break_it(oracle)
    assert re.match(law, str(oracle.violation)), oracle.violation


def test_a_commit_of_a_driver_that_was_killed_before_the_state_was_set_back_runs_no_more(oracle: Oracle) -> None:
    oracle._running.add(("ledger", 0, Token(2, 3, 4)))
    oracle._check_alone(Token(2, 3, 4))
    assert oracle.violation is None
    oracle.set_back(oracle.backup())
    oracle._check_alone(Token(2, 1, 2))
    assert oracle.violation is None, "its epoch is that of the driver before, which is dead"
