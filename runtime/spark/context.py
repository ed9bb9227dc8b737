"""Starts Spark with what the laws need, quietly; or checks the one that runs already."""

from __future__ import annotations

import os
import select
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark import SparkConf
from pyspark import SparkContext as SparkContext

from stormline.runtime.errors import DiskFull, SparkUnavailable
from stormline.runtime.spark.java import check_java
from stormline.runtime.spark.settings import PREFERRED, REQUIRED, check_no_secrets, check_safe, is_local
from stormline.runtime.world.disk_room import check_room

STOPS_SECS = 5.0
"""How long after the begin of Spark's stop what its JVM prints is dropped: that idle workers' pipes broke."""
_stopping = threading.Event()
_readers: list[int] = []


def start_spark(
    app: str,
    master: str | None,
    conf: Mapping[str, Any],
    verbose: bool = False,
    on_output: Callable[[str], None] | None = None,
) -> tuple[SparkContext, bool]:
    """Return a SparkContext, and whether it was started here (then the caller stops it).

    Args:
        master: Spark's master URL; None: what spark-submit or spark-defaults say.
        conf: `spark.*` settings; they win over ours where no law forbids it.
        verbose: show what Spark prints, from its start on.
        on_output: called with each line that is shown; None: it goes to standard error.

    Raises:
        JavaMissing: there is no Java that Spark can use.
        UnsafeSpark: a setting that breaks a law, or that would show a secret.
        SparkUnavailable: Spark did not start.
    """
    check_no_secrets(conf)
    running = SparkContext._active_spark_context
    if running is not None:
        check_safe(running.master or "", dict(running.getConf().getAll()))
        return running, False
    if under_spark_submit():
        SparkContext._ensure_initialized()  # under spark-submit: SparkConf() then holds what its user gave
    else:
        check_java()
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    settings = SparkConf()
    if not _named(settings):
        settings.setAppName(app)
    if master is not None:
        settings.setMaster(master)
    for key, value in {**REQUIRED, **PREFERRED}.items():
        settings.setIfMissing(key, value)
    if is_local(settings.get("spark.master", "") or ""):
        settings.setIfMissing("spark.ui.enabled", "false")
        settings.setIfMissing("spark.driver.host", "127.0.0.1")
        settings.setIfMissing("spark.driver.bindAddress", "127.0.0.1")
    for key, value in conf.items():
        settings.set(key, str(value).lower() if isinstance(value, bool) else str(value))
    check_safe(settings.get("spark.master", "") or "", dict(settings.getAll()))
    for directory in local_dirs(settings.get("spark.local.dir", "") or ""):
        _check_room(directory)
    _stopping.clear()
    with quiet(verbose, on_output), _handler_kept(signal.SIGINT):
        try:
            sc = SparkContext(conf=settings)
        except Exception as error:
            raise SparkUnavailable(
                f"Spark did not start with master {settings.get('spark.master', '')!r}: "
                f"{str(error).strip().splitlines()[0]}; check the master's URL and that it runs"
            ) from error
        if not verbose:
            sc.setLogLevel("OFF")
    try:
        _check_room(Path(str(sc._temp_dir)))  # it may lie where only the JVM knew
    except DiskFull:
        stop_spark(sc)
        raise
    return sc, True


def local_dirs(setting: str) -> list[Path]:
    """Return where Spark will keep temporary files on this machine: its environment wins over `spark.local.dir`."""
    given = os.environ.get("SPARK_LOCAL_DIRS") or setting
    return [Path(part) for part in given.split(",")] if given else [Path("/tmp")] if os.name == "posix" else []


def _check_room(directory: Path) -> None:
    remedy = "set spark.local.dir (in the environment SPARK_LOCAL_DIRS, which wins) to a directory on another disk"
    check_room(directory, "Spark's temporary files", remedy)


def under_spark_submit() -> bool:
    """Return whether spark-submit started this process, and so has been told which Spark to use."""
    return "PYSPARK_GATEWAY_PORT" in os.environ


def submitted_master(config: Mapping[str, Any]) -> str:
    """Return Spark's master: what spark-submit or spark-defaults say, else what `config` does; "" where nothing."""
    if under_spark_submit():
        SparkContext._ensure_initialized()
        return SparkConf().get("spark.master", "") or ""
    return str(config.get("spark.master", ""))


def unless_given(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return a configuration without the settings of Spark that spark-submit was given, which win over a module's own.

    Call it under spark-submit only.
    """
    SparkContext._ensure_initialized()
    settings = SparkConf()
    given = {key for key in config if key.startswith("spark.") and settings.contains(key)}
    if not _named(settings):
        given.discard("spark.app.name")
    return {key: value for key, value in config.items() if key not in given}


def _named(settings: SparkConf) -> bool:
    """Return whether spark-submit was given a name: without one it takes that of the file that it runs."""
    return settings.get("spark.app.name", "") not in ("", Path(sys.argv[0]).name)


def stop_spark(sc: SparkContext) -> None:
    """Stop Spark. Where its JVM has died forget it, so that this process can start another one."""
    while _readers and select.select(_readers, [], [], 0)[0]:
        time.sleep(0.001)  # what users' code has printed in the workers is shown first
    _stopping.set()
    timer = threading.Timer(STOPS_SECS, _stopping.clear)
    timer.daemon = True
    timer.start()
    try:
        sc.stop()
    except (OSError, Py4JError):
        sc.stop()  # what PySpark has left undone: its own part of it
        SparkContext._gateway = SparkContext._jvm = None


@contextmanager
def _handler_kept(number: signal.Signals) -> Iterator[None]:
    """Keep the main thread's signal handler: PySpark's cancels all jobs on Ctrl-C, those of commits too."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(number)
    try:
        yield
    finally:
        signal.signal(number, before)


@contextmanager
def quiet(verbose: bool, on_output: Callable[[str], None] | None = None) -> Iterator[None]:
    """Hold back what the JVM prints while it starts; print it if the start fails, and what comes until Spark's stop."""
    if verbose and on_output is None:
        yield
        return
    sys.stderr.flush()
    terminal, (reader, writer) = os.dup(2), os.pipe()
    held: list[bytes] = []
    started = threading.Event()
    if verbose:
        started.set()
    show = _shown_by(on_output, terminal)

    def pump() -> None:
        with os.fdopen(reader, "rb", buffering=0) as pipe:
            while chunk := pipe.read(65536):
                if not started.is_set():
                    held.append(chunk)
                elif not _stopping.is_set():
                    show(chunk)
            _readers.remove(reader)

    _readers.append(reader)
    os.dup2(writer, 2)
    os.close(writer)
    threading.Thread(target=pump, daemon=True, name="stormline-jvm-stderr").start()
    try:
        yield
    except BaseException:
        os.dup2(terminal, 2)
        os.write(2, b"".join(held))
        raise
    os.dup2(terminal, 2)
    started.set()


def _shown_by(on_output: Callable[[str], None] | None, terminal: int) -> Callable[[bytes], object]:
    """Return what shows chunks of bytes: by whole lines where there is `on_output`, else as they are."""
    if on_output is None:
        return lambda chunk: os.write(terminal, chunk)
    rest = bytearray()

    def show(chunk: bytes) -> None:
        rest.extend(chunk)
        *lines, last = bytes(rest).split(b"\n")
        rest[:] = last
        for line in lines:
            try:
                on_output(line.decode(errors="replace"))
            except Exception:  # a reporter that is closed: the pipe must be read all the same, or the JVM stands still
                os.write(terminal, line + b"\n")

    return show
