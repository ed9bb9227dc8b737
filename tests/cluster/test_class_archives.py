"""A JVM takes its classes from the archive that was made for it, and without a word."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.services import class_archives, jvm
from tests.services.zookeeper_server import ZooKeeperServer


@pytest.mark.proof
def test_a_zookeeper_loads_its_classes_from_an_archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (jvm, class_archives):
        monkeypatch.setattr(module, "FOLDER", tmp_path / "classes")
    class_archives.make("zookeeper")
    assert [file.name for file in jvm.FOLDER.iterdir()] == ["zookeeper.jsa"]
    log = tmp_path / "loaded"
    with ZooKeeperServer(tmp_path / "data", jvm_options=[f"-Xlog:class+load:file={log}"]):
        pass
    assert re.search(r"zookeeper\.server\.ZooKeeperServerMain source: shared objects file \(top\)", log.read_text())
