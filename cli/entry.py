"""What a bundle's entry runs under spark-submit: one topology, on the Spark that spark-submit configures."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

import click

from stormline.cli.conf import conf_option
from stormline.cli.entry_options import DRIVER_PID_FILE, with_entry_options
from stormline.cli.errors import Ended
from stormline.cli.reporter import print_nowhere
from stormline.cli.run_session import RunOptions
from stormline.cli.running import check_embedded, run_target
from stormline.cli.target import load_target
from stormline.cli.usage import CalledWrongly
from stormline.runtime.cluster.local_cluster import zookeeper_hosts
from stormline.runtime.cluster.state_dir import default_state_dir
from stormline.runtime.spark.settings import is_local
from stormline.topology.config import ZOOKEEPER_SERVERS
from stormline.topology.errors import StormlineError

PARENT_LOOK_SECS = 0.2
DESCRIPTORS_MAX = 256


def main(target: str, arguments: Sequence[str] | None = None) -> int:
    """Run MODULE[:ATTR] as the command line says; return the exit code."""
    try:
        code = entry_command.main(arguments, Path(sys.argv[0]).name, standalone_mode=False, obj=target)
    except click.Abort:  # Ctrl-C before the run has its own handlers
        return 128 + signal.SIGINT
    except click.ClickException as error:
        told = CalledWrongly.of(error) if isinstance(error, click.UsageError) else error
        told.show()
        return told.exit_code
    except StormlineError as error:
        ended = Ended(error)
        ended.show()
        return ended.exit_code
    return int(code or 0)


@click.command()
@with_entry_options
@conf_option
@click.pass_obj
def entry_command(
    target: str,
    zookeeper: str | None,
    state_dir: Path | None,
    conf: dict[str, object],
    keep_running: bool,
    allow_changed_topology: bool,
    progress: str | None,
    verbose: bool,
) -> int:
    """Run the topology of this bundle. SIGTERM and SIGINT stop it after the commit that runs."""
    _tell_pid()
    loaded = load_target(target, from_here=False)  # from the zip, as on the executors
    config = {**loaded.config, **conf}
    from stormline.runtime.spark.context import submitted_master, under_spark_submit, unless_given

    if zookeeper is not None:
        config[ZOOKEEPER_SERVERS] = [server.strip() for server in zookeeper.split(",")]
    if state_dir is not None:
        check_embedded("--state-dir", config)
    elif zookeeper_hosts(config) is None and is_local(submitted_master(config)):
        state_dir = default_state_dir(loaded.topology.id)  # as `run` has it
    options = RunOptions(
        state_dir=state_dir,
        master=None,
        keep_running=keep_running,
        allow_changed_topology=allow_changed_topology,
        verbose=verbose,
    )
    if under_spark_submit():
        config = unless_given(config)
        threading.Thread(target=_end_with_parent, args=(os.getppid(),), daemon=True, name="stormline-parent").start()
    return run_target(loaded, config, options, progress or "live")


def _tell_pid() -> None:
    """Let `stormline submit` know which process to hand its signals to."""
    file = os.environ.pop(DRIVER_PID_FILE, None)
    if file is not None and Path(file).parent.is_dir():  # not where spark-submit has started us elsewhere
        Path(file).write_text(str(os.getpid()))


def _end_with_parent(parent: int) -> None:
    """Stop as on SIGTERM when spark-submit has ended: Spark ended with it, and idle we would not see that."""
    wait = threading.Event()
    while os.getppid() == parent:
        wait.wait(PARENT_LOOK_SECS)
    _print_nowhere()
    os.kill(os.getpid(), signal.SIGTERM)


def _print_nowhere() -> None:
    """Lead all that leads to our standard output and error nowhere: spark-submit, which read them, is gone."""
    printed = {_identity(1), _identity(2)} - {None}
    for descriptor in range(1, DESCRIPTORS_MAX):
        if _identity(descriptor) in printed:
            print_nowhere(descriptor)


def _identity(descriptor: int) -> tuple[int, int] | None:
    try:
        status = os.fstat(descriptor)
    except OSError:
        return None
    return status.st_dev, status.st_ino
