"""A copy of an embedded ZooKeeper's data, served for those who only read: the original may be in use, and stays."""

from __future__ import annotations

import shutil
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from stormline.runtime.cluster.state_files import FILE, zxid
from stormline.runtime.errors import NoState

COPIES_MAX = 10


@contextmanager
def served_copy(state_dir: Path) -> Iterator[str]:
    """Serve a copy of a topology's state directory; give where clients find it.

    Raises:
        NoState: there is no state.
        StateCorrupt: ZooKeeper cannot read it.
        JavaMissing: there is no Java to run it.
    """
    files = state_dir / "zookeeper" / "version-2"
    if not files.is_dir():
        raise NoState(
            f"there is no state of a topology in {state_dir}; run it first, name its directory (--state-dir), or run "
            "this where it was run"
        )
    from stormline.runtime.cluster.embedded_zookeeper import EmbeddedZooKeeper
    from stormline.runtime.spark.bare_jvm import bare_jvm

    with tempfile.TemporaryDirectory(prefix="stormline-") as directory, bare_jvm() as gateway:
        copy = Path(directory, "zookeeper")
        copy_files(files, copy / "version-2")
        with warnings.catch_warnings():  # pyspark's own, of pandas, where nobody uses it
            warnings.simplefilter("ignore", FutureWarning)
            server = EmbeddedZooKeeper(gateway, copy)
        try:
            yield server.hosts
        finally:
            server.stop()


def copy_files(files: Path, into: Path) -> None:
    """Copy ZooKeeper's files while a server may write to them: snapshots first, then the logs, which go on from them.

    A snapshot that is being written is none to ZooKeeper, and neither is the torn end of a log.
    """
    for _ in range(COPIES_MAX - 1):
        try:
            _copy_once(files, into)
        except FileNotFoundError:  # what is not needed any more was deleted meanwhile
            continue
        return
    _copy_once(files, into)


def _copy_once(files: Path, into: Path) -> None:
    shutil.rmtree(into, ignore_errors=True)
    into.mkdir(mode=0o700, parents=True)
    for snapshots in (True, False):
        found = [path for path in files.iterdir() if FILE.fullmatch(path.name)]
        for path in sorted(found, key=lambda path: zxid(path.name)):
            if path.name.startswith("snapshot") == snapshots:
                shutil.copyfile(path, into / path.name)
