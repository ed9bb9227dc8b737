"""`stormline submit`: compiles a topology and runs spark-submit on it."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import shlex
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from stormline.cli.bundle import Bundle
from stormline.cli.compile import bundle_target, entry_settings, files_of, py_files_option, settings_of
from stormline.cli.conf import conf_option
from stormline.cli.entry_options import DRIVER_PID_FILE, as_arguments, with_entry_options
from stormline.cli.errors import SparkSubmitMissing
from stormline.cli.findings import print_findings
from stormline.cli.target import TARGET_HELP, load_target
from stormline.topology.compiler import compile_topology

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_SHORT = {"-o": "--output", "-c": "--conf", "-h": "--help"}


class _SubmitCommand(click.Command):
    """Takes short options as whole words only: click would find the letter in spark-submit's words, as in -Dhost=x."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        return super().parse_args(ctx, [_SHORT.get(word, word) for word in args])


@click.command(
    "submit",
    cls=_SubmitCommand,
    epilog=TARGET_HELP,
    context_settings={"ignore_unknown_options": True, "help_option_names": ["--help"]},
)
@click.argument("target", metavar="MODULE[:ATTR]")
@click.argument("flags", metavar="[SPARK-SUBMIT FLAGS]...", nargs=-1, type=click.UNPROCESSED)
@click.option(
    "--output",
    "directory",
    metavar="DIR",
    type=click.Path(path_type=Path, file_okay=False),
    help="Where to write the bundle. Default: a temporary directory, removed at the end.",
)
@py_files_option
@conf_option
@with_entry_options
@click.option("--dry-run", is_flag=True, help="Print the command only: write nothing, start nothing.")
@click.pass_context
def submit_command(
    context: click.Context,
    /,
    target: str,
    flags: tuple[str, ...],
    directory: Path | None,
    py_files: tuple[str, ...],
    conf: dict[str, Any],
    dry_run: bool,
    **options: Any,
) -> None:
    """Compile a topology, and run it by spark-submit.

    MODULE comes first; flags that are not known here (--master, --executor-memory, ...) go to spark-submit. Settings
    of Spark go there too, others to the topology. The spark-submit is that of SPARK_HOME, else of the pyspark
    package. The exit code is spark-submit's.

    SIGINT and SIGTERM stop the topology after the commit that runs; a second one stops it at once.

    Example: stormline submit examples.flight_delays --master spark://HOST:7077 --zookeeper HOST:2181
    """
    if target.startswith("-"):
        raise click.UsageError(f"MODULE comes first, before {target}: stormline submit MODULE[:ATTR] {target} ...")
    loaded = load_target(target)
    plan = compile_topology(loaded.topology, {**loaded.config, **conf})
    print_findings(plan, target, loaded.module.__name__)
    settings = settings_of(loaded, conf)
    if not (options["verbose"] or any(part.startswith("spark.log.level=") for part in settings)):
        settings += ["--conf", "spark.log.level=ERROR"]  # what Spark says of its start; later it is quiet anyway
    arguments = [*as_arguments(options), *entry_settings(conf)]
    program = spark_submit()
    environment = _environment(settings, flags)

    def command(bundle: Bundle) -> list[str]:
        return [str(program), *flags, *settings, *files_of(bundle), *arguments]

    if dry_run:
        line = command(Bundle.of(loaded.topology.id, directory or Path("DIR")))
        click.echo(shlex.join([*(f"{name}={value}" for name, value in environment.items()), *line]))
        return
    with tempfile.TemporaryDirectory(prefix="stormline-") as temporary:
        bundle = bundle_target(loaded, plan, target, directory or Path(temporary), py_files)
        pid_file = Path(temporary) / "driver.pid"
        code = _run(command(bundle), {**os.environ, **environment, DRIVER_PID_FILE: str(pid_file)}, pid_file)
    context.exit(code)


def spark_submit() -> Path:
    """Return the spark-submit of SPARK_HOME, else of the pyspark package.

    Raises:
        SparkSubmitMissing: there is none.
    """
    home = os.environ.get("SPARK_HOME")
    if not home:
        spec = importlib.util.find_spec("pyspark")
        if spec is None or spec.origin is None:
            raise SparkSubmitMissing("there is no spark-submit: set SPARK_HOME, or install the package pyspark")
        home = str(Path(spec.origin).parent)
    program = Path(home, "bin", "spark-submit")
    if not os.access(program, os.X_OK):
        raise SparkSubmitMissing(
            f"{program} does not exist, or may not be executed: set SPARK_HOME to the directory of a Spark"
        )
    return program


def _environment(settings: Sequence[str], flags: Sequence[str]) -> dict[str, str]:
    """Return what the environment lacks: the Python that runs this, for driver and executors."""
    named = any(part.startswith("spark.pyspark.python=") for part in (*settings, *flags))
    return {} if named or "PYSPARK_PYTHON" in os.environ else {"PYSPARK_PYTHON": sys.executable}


def _run(command: Sequence[str], environment: Mapping[str, str], driver_pid_file: Path) -> int:
    """Run a command and return its exit code; hand signals to the driver's Python, which ends spark-submit with it.

    spark-submit gets a session of its own, so that a terminal's Ctrl-C does not end Spark before the last commit.
    """
    process: subprocess.Popen[bytes] | None = None
    early: list[int] = []

    def hand_on(number: int, frame: object) -> None:
        if process is None:
            early.append(number)
            return
        number = signal.SIGTERM if number == signal.SIGHUP else number
        with contextlib.suppress(ProcessLookupError):
            try:
                os.kill(int(driver_pid_file.read_text()), number)
            except (FileNotFoundError, ValueError):  # not yet, or on another machine
                process.send_signal(number)

    mine = _SIGNALS if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN else _SIGNALS[:2]  # nohup
    before = {number: signal.signal(number, hand_on) for number in mine}
    try:
        process = subprocess.Popen(command, env=environment, start_new_session=True)
        for number in early:
            hand_on(number, None)
        code = process.wait()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    return code if code >= 0 else 128 - code
