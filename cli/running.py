"""run_target: all of `stormline run` but its options, for whatever starts a topology from a command line."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from stormline.cli.errors import StateDirUnusable, error_text
from stormline.cli.leave import LeaveNow, leave, leave_if_hung
from stormline.cli.reporter import Reporter, reporter_for
from stormline.cli.run_session import RunOptions, RunSession, end_hung_spark
from stormline.cli.stop_signals import StopSignals
from stormline.cli.target import Target
from stormline.runtime.cluster.local_cluster import zookeeper_hosts
from stormline.runtime.zookeeper.security import ZooKeeperSecurity
from stormline.topology.compiler import compile_topology
from stormline.topology.config import ZOOKEEPER_ROOT, setting
from stormline.topology.errors import StormlineError
from stormline.topology.texts import told


def run_target(target: Target, config: Mapping[str, Any], options: RunOptions, progress: str = "auto") -> int:
    """Run a topology, show its progress, and print its module's report after a good end; return the exit code.

    Called by the main thread. Why a run failed is printed to standard error. The process ends here and now where
    it could not end otherwise.

    Raises:
        StateDirUnusable: the state directory cannot be made, or not be written to.
        StormlineError: the topology, its configuration or the module's report is wrong.
    """
    compile_topology(target.topology, config)  # what is declared wrongly shows before anything starts
    ZooKeeperSecurity.of(config)
    if options.state_dir is not None and zookeeper_hosts(config) is None:
        _make(options.state_dir)
    reporter = reporter_for(progress)
    exit_code = _run(target.topology.id, target, config, options, reporter)
    if exit_code == 0 and target.report is not None:
        text = target.report()
        if text is not None:
            reporter.report(text)
    leave_if_hung(exit_code)
    return exit_code


def check_embedded(option: str, config: Mapping[str, Any]) -> None:
    """Refuse an option of the embedded ZooKeeper where the configuration names the servers of another one.

    Raises:
        click.UsageError: it does.
    """
    hosts = zookeeper_hosts(config)
    if hosts is not None:
        raise click.UsageError(f"{option} is for the embedded ZooKeeper, but the configuration names {hosts}")


def _make(state_dir: Path) -> None:
    """Make the state directory while that costs nothing: Spark takes seconds to start."""
    try:
        state_dir.joinpath("zookeeper").mkdir(mode=0o700, parents=True, exist_ok=True)
        reason = None if os.access(state_dir, os.W_OK | os.X_OK) else "it is not writable"
    except OSError as error:
        reason = error.strerror
    if reason is not None:
        raise StateDirUnusable(
            f"state directory {state_dir.absolute()} cannot be used ({reason}); name one that can be written to with "
            "--state-dir, or run in another directory"
        )


def _run(topology_id: str, target: Target, config: Mapping[str, Any], options: RunOptions, reporter: Reporter) -> int:
    signals = StopSignals()
    failed: StormlineError | None = None
    with reporter, _log_to(reporter, options.verbose), signals:
        reporter.starting(topology_id, _state(topology_id, config, options))
        session = RunSession(target.topology, config, options, reporter, signals)
        try:
            reporter.ended(session.run())
        except LeaveNow as now:
            reporter.notice(str(now))
            end_hung_spark()
            reporter.close()
            leave(now.exit_code)
        except StormlineError as error:
            failed = error
            if session.final is not None:
                reporter.failed(session.final)
    if failed is not None:
        click.echo(error_text(str(failed)), err=True)
    stopped = signals.received is not None and not session.reached
    if stopped and session.final is not None:
        kept = options.state_dir is not None or zookeeper_hosts(config) is not None
        go_on = "; run again to go on" if kept else ""
        click.echo(f"stopped at transaction {session.final.txid_committed}{go_on}", err=True)
    # A failure on the way out may come of the signal itself, where Spark has got it too.
    return signals.exit_code if stopped else int(failed is not None)


def _state(topology_id: str, config: Mapping[str, Any], options: RunOptions) -> str:
    hosts = zookeeper_hosts(config)
    if hosts is not None:
        return f"state in ZooKeeper at {hosts}, below {setting(config, ZOOKEEPER_ROOT)}/{topology_id}"
    return f"state in {options.state_dir or 'a temporary directory'}"


class _NoticeHandler(logging.Handler):
    """Shows log records as notices, so that they do not tear the live line."""

    def __init__(self, reporter: Reporter) -> None:
        super().__init__()
        self._reporter = reporter
        self.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))

    def emit(self, record: logging.LogRecord) -> None:
        """Print the record."""
        try:
            self._reporter.notice(told(self.format(record)))
        except Exception:
            self.handleError(record)


@contextmanager
def _log_to(reporter: Reporter, verbose: bool) -> Iterator[None]:
    """Show what Stormline logs from warnings on, or all; as the user's own logging says where that is set up."""
    log = logging.getLogger("stormline")
    if verbose and log.level == logging.NOTSET:
        log.setLevel(logging.INFO)
    if logging.getLogger().handlers or log.handlers:
        yield
        return
    handler = _NoticeHandler(reporter)
    log.addHandler(handler)
    try:
        yield
    finally:
        log.removeHandler(handler)
