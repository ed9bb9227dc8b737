"""When a run ends, and how: drained, at a transaction, in time, by a signal, by an error. On the in-process cluster."""

import threading
import time
from collections.abc import Callable
from itertools import count
from pathlib import Path
from signal import SIGTERM
from typing import Any

import pytest

from stormline.cli import run_session
from stormline.cli.errors import NotDone
from stormline.cli.leave import LeaveNow
from stormline.cli.reporter import Reporter
from stormline.cli.run_session import RunOptions, RunSession
from stormline.cli.stop_signals import StopSignals
from stormline.runtime.cluster.in_process_cluster import InProcessCluster
from stormline.runtime.coordination.progress import Snapshot
from stormline.runtime.errors import TopologyFailed
from stormline.runtime.state.memory_store import MemoryStateServer
from stormline.topology.topology import Topology
from tests.kits.components import EVENTS, LEDGERS, Fault, Store, eventually, line, numbers

_ids = count()


class Notes(Reporter):
    """Keeps what it is told."""

    def __init__(self) -> None:
        super().__init__()
        self.notices: list[str] = []
        self.waves: list[Snapshot] = []
        self.looks: list[Snapshot] = []
        self.first: list[int] = []

    def begun(self, topology: str, txid: int) -> None:
        self.first.append(txid)

    def notice(self, text: str) -> None:
        self.notices.append(text)

    def wave(self, snapshot: Snapshot) -> None:
        self.waves.append(snapshot)

    def look(self, snapshot: Snapshot) -> None:
        self.looks.append(snapshot)


class Waiting(Store):
    """Waits in its first commit until the test lets it go on."""

    def finish_batch(self) -> None:
        EVENTS[f"{self.ledger} commits"].set()
        assert EVENTS[f"{self.ledger} may go on"].wait(20)
        super().finish_batch()


class Run:
    """One run, with all that a test wants to look at."""

    def __init__(self, store: type[Store] = Store, fault: Fault | None = None, **options: Any) -> None:
        self.name = f"session-{next(_ids)}"
        bolt = store(self.name, fault) if fault else store(self.name)
        self.topology: Topology = line(
            self.name, numbers(20), 1, lambda b: b.set_bolt("store", bolt).global_grouping("spout")
        )
        self.notes = Notes()
        self.signals = StopSignals()
        self.session = RunSession(self.topology, {}, RunOptions(**options), self.notes, self.signals)

    def __call__(self) -> Snapshot:
        with self.notes:
            return self.session.run()

    @property
    def stored(self) -> list[Any]:
        return sorted(LEDGERS[self.name].all())


@pytest.fixture(autouse=True)
def server(monkeypatch: pytest.MonkeyPatch) -> MemoryStateServer:
    """All runs of a test are on the in-process cluster, with one store for their state."""
    server = MemoryStateServer()
    monkeypatch.setattr(run_session, "LocalCluster", lambda *args, **kwargs: InProcessCluster(server))
    monkeypatch.setattr(run_session, "POLL_SECS", 0.01)
    return server


def stops(session: RunSession) -> bool:
    handle = session._handle
    return handle is not None and handle._runner._stop_asked.is_set()


def in_the_background(action: Callable[[], None]) -> None:
    threading.Thread(target=action, daemon=True).start()


def test_a_run_ends_when_the_spout_is_drained() -> None:
    run = Run()
    final = run()
    assert run.stored == list(range(20))
    assert (final.txid_committed, final.transactions, final.tuples) == (10, 10, 20)
    assert run.notes.notices == []
    assert [wave.waves for wave in run.notes.waves] == list(range(1, final.waves + 1))


def test_a_run_ends_once_a_transaction_is_committed() -> None:
    final = Run(until=3, keep_running=True)()
    assert final.txid_committed >= 3


def test_a_run_that_is_drained_before_the_transaction_it_was_to_reach_says_so() -> None:
    run = Run(until=11)
    assert run().txid_committed == 10
    assert run.notes.notices == ["the spout is drained: there was no transaction 11 (--until) to wait for"]


def test_a_run_that_is_to_keep_running_ends_well_at_its_time() -> None:
    run = Run(keep_running=True, timeout_secs=0.5)
    assert run().txid_committed == 10


def test_a_run_that_is_not_done_in_time_stops_after_the_commit_that_runs() -> None:
    run = Run(Waiting, timeout_secs=0.2)

    def let_go() -> None:
        eventually(lambda: stops(run.session))
        EVENTS[f"{run.name} may go on"].set()

    in_the_background(let_go)
    with pytest.raises(NotDone) as caught:
        run()
    assert str(caught.value) == (
        f"topology {run.name!r} was not done within the 0.2 s of --timeout: stopped at transaction 1"
    )
    assert len(run.stored) == 2


def test_a_signal_stops_a_run_after_the_commit_that_runs_and_the_next_run_goes_on() -> None:
    run = Run(Waiting)

    def signal() -> None:
        assert EVENTS[f"{run.name} commits"].wait(20)
        eventually(lambda: run.session._handle is not None)
        run.signals.received = SIGTERM
        eventually(lambda: stops(run.session))
        EVENTS[f"{run.name} may go on"].set()

    in_the_background(signal)
    assert run().txid_committed == 1
    assert run.notes.notices == ["stopping after the commit of transaction 1; again: stop at once"]
    assert run.signals.exit_code == 143
    assert len(run.stored) == 2
    notes = Notes()
    with notes:
        assert RunSession(run.topology, {}, RunOptions(), notes, StopSignals()).run().txid_committed == 10
    assert (run.notes.first, notes.first) == ([1], [2])
    assert run.signals.committed is not None
    assert run.signals.committed() == 1
    assert run.stored == list(range(20))


class StopsLate(InProcessCluster):
    """Takes its time to stop, as Spark does."""

    def __exit__(self, *error: Any) -> None:
        EVENTS["stops"].set()
        assert EVENTS["may stop"].wait(20)
        super().__exit__(*error)


def test_neither_the_time_nor_a_signal_fails_a_run_that_is_done_while_spark_stops(
    server: MemoryStateServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_session, "LocalCluster", lambda *args, **kwargs: StopsLate(server))
    run = Run(timeout_secs=3)

    def signal_then_wait() -> None:
        assert EVENTS["stops"].wait(20)
        run.signals._handle(SIGTERM, None)
        eventually(lambda: bool(run.notes.notices))
        time.sleep(3)
        EVENTS["may stop"].set()

    in_the_background(signal_then_wait)
    assert run().txid_committed == 10
    assert run.session.reached
    assert run.notes.notices == ["all is committed, and Spark is being stopped; again: stop at once"]


def test_a_signal_before_spark_is_up_ends_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    start = threading.Event()
    monkeypatch.setattr(run_session, "spark_is_up", lambda: False)
    monkeypatch.setattr(run_session, "LocalCluster", lambda *args, **kwargs: start.wait(20))
    run = Run()
    run.signals.received = SIGTERM
    with pytest.raises(LeaveNow, match=r"^stopped before the topology began; run again to begin$") as caught:
        run()
    assert caught.value.exit_code == 143
    start.set()


def test_a_signal_while_the_topology_starts_stops_it_as_soon_as_it_has_started(
    monkeypatch: pytest.MonkeyPatch, server: MemoryStateServer
) -> None:
    run = Run(Waiting, keep_running=True)

    def cluster(*args: Any, **kwargs: Any) -> InProcessCluster:
        eventually(run.session._stopping.is_set)
        return InProcessCluster(server)

    def go_on_once_stopped() -> None:
        eventually(lambda: stops(run.session))
        EVENTS[f"{run.name} may go on"].set()

    monkeypatch.setattr(run_session, "spark_is_up", lambda: True)
    monkeypatch.setattr(run_session, "LocalCluster", cluster)
    run.signals.received = SIGTERM
    in_the_background(go_on_once_stopped)
    assert run().txid_committed <= 1
    assert run.notes.notices == ["stopping as soon as the topology has started; again: stop at once"]


def test_the_deadline_ends_the_process_if_spark_does_not_start(monkeypatch: pytest.MonkeyPatch) -> None:
    start = threading.Event()
    monkeypatch.setattr(run_session, "spark_is_up", lambda: False)
    monkeypatch.setattr(run_session, "LocalCluster", lambda *args, **kwargs: start.wait(20))
    with pytest.raises(LeaveNow, match=r"^error: Spark has not started within 0\.05 s$"):
        Run(timeout_secs=0.05)()
    start.set()


def test_the_users_error_ends_the_run() -> None:
    run = Run(fault=Fault("before", txid=3, error="bug"))
    with pytest.raises(TopologyFailed, match=r"(?s)^Traceback.*ZeroDivisionError: on order in before"):
        run()
    assert run.session.final is not None
    assert run.session.final.txid_committed == 2


def test_a_lost_session_ends_the_process_without_waiting_for_user_code(server: MemoryStateServer) -> None:
    run = Run(Waiting)

    def lose() -> None:
        assert EVENTS[f"{run.name} commits"].wait(20)
        server.expire(run.name)

    in_the_background(lose)
    with pytest.raises(LeaveNow, match=f"^error: the session of topology '{run.name}' has expired") as caught:
        run()
    assert caught.value.exit_code == 1
    EVENTS[f"{run.name} may go on"].set()
    assert run.session._done.wait(20)


def runs(
    monkeypatch: pytest.MonkeyPatch, directory: Path, *lines: list[str]
) -> list[tuple[dict[str, Any], RunOptions]]:
    """Return what `stormline run examples.words` would run, with the configuration, for each list of options."""
    from click.testing import CliRunner

    from stormline.cli import running
    from stormline.cli.main import main

    seen: list[tuple[dict[str, Any], RunOptions]] = []

    def run_target(target: Any, config: Any, options: RunOptions, progress: str) -> int:
        seen.append((config, options))
        return 0

    monkeypatch.setattr(running, "run_target", run_target)
    monkeypatch.chdir(directory)
    for options in lines:
        assert CliRunner().invoke(main, ["run", "examples.words", *options]).exit_code == 0
    return seen


def test_the_default_state_directory_is_one_for_each_topology(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    servers = ["--conf", "transactional.zookeeper.servers=a"]
    seen = runs(monkeypatch, tmp_path, [], ["--fresh"], ["--state-dir", "here"], servers)
    assert [options.state_dir for _, options in seen] == [Path(".stormline/top-n-words"), None, Path("here"), None]


def test_the_master_is_that_of_the_option_else_of_the_configuration(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    theirs = ["--conf", "spark.master=local[2]"]
    seen = runs(monkeypatch, tmp_path, [], theirs, [*theirs, "--master", "local[1]"])
    assert [options.master for _, options in seen] == ["local[*]", "local[2]", "local[1]"]
    assert not any("spark.master" in config for config, _ in seen)
