"""CONTRIBUTING.md: what it tells a newcomer to run can be run; supported Pythons are said alike everywhere."""

from __future__ import annotations

import configparser
import re
import subprocess
import sys
from importlib.metadata import metadata
from pathlib import Path

import stormline
from tests.unit.docs.project_texts import ROOT

PAGE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")


def setup_cfg() -> configparser.ConfigParser:
    read = configparser.ConfigParser()
    read.read(ROOT / "setup.cfg", encoding="utf-8")
    return read


def test_the_test_of_a_bolt_on_the_page_passes(tmp_path: Path) -> None:
    (block,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    (tmp_path / "test_sum.py").write_text(block, encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "-W", "error", "-p", "no:cacheprovider", "test_sum.py"]
    shown = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert shown.returncode == 0, shown.stdout + shown.stderr
    assert "2 passed" in shown.stdout


def test_targets_of_make_that_the_pages_name_exist() -> None:
    for page in ("CONTRIBUTING.md", "docs/releasing.md", "docs/laws.md"):
        named = re.findall(r"(?:`|^)make ([a-z-]+)(?:`| )", (ROOT / page).read_text(encoding="utf-8"), re.MULTILINE)
        assert [name for name in named if name not in targets()] == [], page


def test_targets_of_make_that_the_hosted_workflow_runs_exist() -> None:
    workflow = (ROOT / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8")
    assert re.findall(r"run: make (\S+) PYTHON=python\n", workflow) == ["test", "proof"]
    assert {"test", "proof"} <= targets()


def targets() -> set[str]:
    """Return the targets of the Makefile that it lists."""
    return set(re.findall(r"^([a-z-]+):.*## ", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))


def test_folders_and_commands_that_the_page_names_exist() -> None:
    for folder in re.findall(r"`((?:\w+/)+\w*|tests/\w+|runtime/\w+)`", PAGE):
        assert (ROOT / folder).is_dir(), folder


def test_supported_pythons_are_those_of_pyspark_and_are_said_alike_everywhere() -> None:
    spark = metadata("pyspark")
    oldest = spark["Requires-Python"].removeprefix(">=")
    minor = re.compile(r"Programming Language :: Python :: (3\.\d+)$")
    sparks = [found[1] for line in spark.get_all("Classifier", []) if (found := minor.match(line))]
    ours = [found[1] for line in setup_cfg()["metadata"]["classifiers"].split("\n") if (found := minor.match(line))]
    assert ours == sparks
    assert ours[0] == oldest
    assert setup_cfg()["options"]["python_requires"] == f">={oldest}"
    workflow = (ROOT / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8")
    assert re.findall(r"python: \[(.*)\]", workflow) == [", ".join(f'"{version}"' for version in ours)]
    assert f"Python {oldest} or newer" in (ROOT / "README.md").read_text(encoding="utf-8")
    assert f"Python {oldest} or newer" in PAGE
    check = (ROOT / "scripts" / "check_python.sh").read_text(encoding="utf-8")
    assert check.count(f"Python {oldest} or newer") == 2
    assert f"sys.version_info < ({oldest.replace('.', ', ')})" in check
    ruff = (ROOT / "ruff.toml").read_text(encoding="utf-8")
    assert f'target-version = "py{oldest.replace(".", "")}"' in ruff


def test_the_version_is_said_alike_in_the_code_and_in_setup_cfg() -> None:
    assert setup_cfg()["metadata"]["version"] == stormline.__version__
