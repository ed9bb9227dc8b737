"""`stormline transactions`: what it lists, commits and aborts, and what it refuses."""

from __future__ import annotations

import json
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from examples import order_files
from stormline import FailedException, InProcessCluster
from stormline.cli import transactions as transactions_module
from stormline.cli.main import main
from stormline.runtime.errors import Fenced
from stormline.runtime.state.memory_store import MemoryStateServer, MemoryStateStore
from stormline.state import FileTwoPhaseSink
from stormline.state.errors import StoreUnavailable
from stormline.topology.transaction_label import TransactionLabel, label_scope

EXAMPLE = "examples.order_files"
PENDING = order_files.DIRECTORY / ".pending"


def call(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["transactions", *arguments], prog_name="stormline")


def listed() -> list[dict[str, Any]]:
    done = call("list", EXAMPLE, "--format", "json")
    assert (done.exit_code, done.stderr) == (0, "")
    rows: list[dict[str, Any]] = json.loads(done.stdout)
    return rows


@pytest.fixture
def died(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> MemoryStateServer:
    """The example, whose driver has died between the two commits of transaction 2."""
    monkeypatch.chdir(tmp_path)
    server, commit = MemoryStateServer(), FileTwoPhaseSink.commit

    def dies(sink: FileTwoPhaseSink, handle: Any) -> Any:
        outcome = commit(sink, handle)
        label = TransactionLabel.read(handle)
        if label is not None and label.txid == 2:
            server.vanish("order-files")
        return outcome

    with monkeypatch.context() as patched:
        patched.setattr(FileTwoPhaseSink, "commit", dies)
        with InProcessCluster(server) as cluster:
            handle = cluster.submit(order_files.topology(), order_files.config)
            with pytest.raises(Fenced):
                handle.await_drained(60)
    # As if it had died before the second commit.
    (order_files.DIRECTORY / "000000000002-0003.jsonl").rename(PENDING / f"{label_of(2, 3, server)}.prepared")

    @contextmanager
    def state(*_: Any) -> Iterator[Any]:
        opened = MemoryStateStore.open(server, "order-files")
        try:
            yield opened
        finally:
            opened.close()

    monkeypatch.setattr(transactions_module, "stored_state", state)
    return server


def label_of(txid: int, task: int, server: MemoryStateServer) -> str:
    """Return the label of one task that is on record."""
    store = MemoryStateStore.open(server, "order-files")
    try:
        labels = [label for _, label, _ in store.get(f"batches/{txid:012}")["handles"]]
    finally:
        store.close()
    (found,) = [text for text in labels if (label := TransactionLabel.read(text)) is not None and label.task == task]
    return found


def test_what_is_decided_is_listed_and_can_be_committed(died: MemoryStateServer) -> None:
    rows = [row for row in listed() if row["txid"] == 2]
    assert {row["standing"] for row in rows} == {"decided: only commit is possible"}
    assert sorted(row["prepared"] for row in rows) == [False, True]
    (one,) = [row for row in rows if row["prepared"]]
    assert one["age_secs"] >= 0
    done = call("commit", EXAMPLE, one["label"], "--stopped")
    assert (done.exit_code, done.stdout) == (0, f"{one['label']}: it is committed now\n")
    done = call("commit", EXAMPLE, one["label"], "--stopped")
    assert (done.exit_code, done.stdout) == (0, f"{one['label']}: it was committed before\n")


def test_what_a_running_topology_may_withdraw_is_not_committed_beside_it(died: MemoryStateServer) -> None:
    (one,) = [row for row in listed() if row["txid"] == 2 and row["prepared"]]
    done = call("commit", EXAMPLE, one["label"])
    assert done.exit_code == 1
    assert "may also withdraw it and write its rows again; stop the topology and give --stopped" in done.stderr
    assert (PENDING / f"{one['label']}.prepared").exists()


def test_what_is_lost_ends_with_1(died: MemoryStateServer) -> None:
    (one,) = [row for row in listed() if row["txid"] == 2 and row["prepared"]]
    (PENDING / f"{one['label']}.prepared").unlink()
    done = call("commit", EXAMPLE, one["label"], "--stopped")
    assert done.exit_code == 1
    assert "it is proven that it was not committed" in done.stdout


def test_what_is_on_record_is_neither_aborted_nor_committed_out_of_turn(died: MemoryStateServer) -> None:
    decided = next(row for row in listed() if row["txid"] == 2)
    done = call("abort", EXAMPLE, decided["label"], "--stopped")
    assert done.exit_code == 1
    assert "where it were aborted its rows would be lost" in done.stderr
    waits = next(row for row in listed() if row["txid"] == 3)
    assert waits["standing"] == "on record: waits for the transactions before it"
    done = call("commit", EXAMPLE, waits["label"])
    assert done.exit_code == 1
    assert "only what is decided can be committed" in done.stderr


def test_what_was_left_behind_is_aborted(died: MemoryStateServer) -> None:
    scope = label_scope("order-files", "files")
    old, unknown = (TransactionLabel(scope, txid, 1, 1, 2, 99).text for txid in (1, 900))
    for label in (old, unknown):
        (PENDING / f"{label}.open").touch()
    standings = {row["label"]: row["standing"] for row in listed()}
    assert standings[old] == "left behind: it is never committed"
    assert standings[unknown].startswith("on no record")
    done = call("abort", EXAMPLE, old)
    assert (done.exit_code, done.stdout) == (0, f"{old}: it is aborted\n")
    done = call("abort", EXAMPLE, unknown)
    assert done.exit_code == 1
    assert "stop the topology and give --stopped, or let it run: it sweeps what was left behind" in done.stderr
    assert call("abort", EXAMPLE, unknown, "--stopped").exit_code == 0
    assert {old, unknown}.isdisjoint(row["label"] for row in listed())


def test_text_shows_a_table_and_says_where_there_is_nothing(died: MemoryStateServer) -> None:
    assert "label" in call("list", EXAMPLE).stdout.splitlines()[0]
    died.topologies.clear()
    for path in PENDING.iterdir():
        path.unlink()
    assert call("list", EXAMPLE).stdout == "nothing is pre-committed\n"


def test_a_sink_that_cannot_be_asked_now_is_told_in_a_sentence(
    died: MemoryStateServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is replayed here."""
    away = StoreUnavailable(
        "postgresql:x is not available: Error: connection\n refused; the batch is replayed until it is"
    )
    for error in (away, FailedException("postgresql:x is not available: Error: connection refused")):

        def fails(*_: Any, error: Exception = error) -> Any:
            raise error

        monkeypatch.setattr(FileTwoPhaseSink, "list_prepared", fails)
        done = call("list", EXAMPLE)
        assert done.exit_code == 1
        assert done.stderr == (
            "error: a two-phase sink of topology 'order-files' cannot be asked now: postgresql:x is not available: "
            "Error: connection refused; whether it has done what it was asked for is not known: see that its server "
            "answers, and ask again\n"
        )


def test_a_sink_that_raises_shows_its_own_traceback(died: MemoryStateServer, monkeypatch: pytest.MonkeyPatch) -> None:
    def boom(*_: Any) -> Any:
        raise ZeroDivisionError("in a sink")

    monkeypatch.setattr(FileTwoPhaseSink, "commit", boom)
    (one,) = [row for row in listed() if row["txid"] == 2 and row["prepared"]]
    done = call("commit", EXAMPLE, one["label"], "--stopped")
    assert done.exit_code == 1
    assert done.stderr.startswith("Traceback (most recent call last):\n")
    assert ", in boom\n" in done.stderr
    assert "a two-phase sink of topology 'order-files' failed: ZeroDivisionError: in a sink" in done.stderr


def test_an_outcome_that_is_none_is_told(died: MemoryStateServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FileTwoPhaseSink, "commit", lambda *_: None)
    (one,) = [row for row in listed() if row["txid"] == 2 and row["prepared"]]
    done = call("commit", EXAMPLE, one["label"], "--stopped")
    assert (done.exit_code, done.stdout) == (1, "")
    assert done.stderr == "error: commit() of the sink of bolt 'files' returned None, expected a CommitOutcome\n"


def test_ctrl_c_ends_the_command_while_a_sink_hangs(died: MemoryStateServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a wait for the sink: it could not be closed before its call comes back."""
    comes_back, came_back = threading.Event(), threading.Event()

    def hangs(*_: Any) -> Any:
        main_thread = threading.main_thread().ident
        assert main_thread is not None
        comes_back.wait(0.2)  # by then that thread waits: just before it does Python hears of a signal only afterwards
        signal.pthread_kill(main_thread, signal.SIGINT)  # as a terminal's arrives
        comes_back.wait(60)
        came_back.set()
        return ()

    monkeypatch.setattr(FileTwoPhaseSink, "list_prepared", hangs)
    try:
        done = call("list", EXAMPLE)
        assert not came_back.is_set()
    finally:
        comes_back.set()
    assert done.exit_code == 130


def test_a_label_that_nobody_knows_is_refused(died: MemoryStateServer) -> None:
    done = call("abort", EXAMPLE, "nobody's")
    assert done.exit_code == 1
    assert 'no transaction "nobody\'s" is on record or listed by a sink' in done.stderr


def test_a_topology_without_sinks_has_nothing_to_list(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    done = call("list", "examples.words")
    assert done.exit_code == 1
    assert "no bolt of topology 'top-n-words' writes into a two-phase sink (TwoPhaseCommitBolt)" in done.stderr
