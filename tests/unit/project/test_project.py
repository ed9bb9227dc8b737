"""The project's own files keep what the README promises of them."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
LINES_MAX = 400
ROOMS = ("topology", "bolts", "spouts", "runtime", "cli", "state")


def run(*command: str, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=60)


def project_files() -> list[Path]:
    """Lists the files that are, or would be, committed; not links: their targets are listed anyway."""
    if shutil.which("git") is None or not (ROOT / ".git").exists():
        pytest.skip("not a git checkout")
    listed = run("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
    assert listed.returncode == 0, listed.stderr
    paths = [ROOT / name for name in listed.stdout.split("\0") if name]
    return [path for path in paths if path.is_file() and not path.is_symlink()]


def test_importing_stormline_imports_no_pyspark() -> None:
    code = (
        "import sys, stormline\n"
        "assert stormline.__file__, 'stormline has no __init__.py'\n"
        "print([name for name in sys.modules if name.split('.')[0] in ('pyspark', 'py4j')])"
    )
    done = run(sys.executable, "-c", code)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("room", ROOMS)
def test_each_room_is_linked_into_the_package_by_a_relative_link(room: str) -> None:
    link = ROOT / "stormline" / room
    assert link.is_symlink()
    assert os.readlink(link) == f"../{room}"
    assert (link / "__init__.py").is_file()


@pytest.mark.skipif(shutil.which("make") is None, reason="no make on this machine")
def test_bare_make_lists_its_targets() -> None:
    env = {name: value for name, value in os.environ.items() if not re.fullmatch("MAKE.*|MFLAGS", name)}
    done = run("make", env=env)
    assert done.returncode == 0, done.stderr
    listed = re.findall(r"^  ([a-z-]+) +\S", done.stdout, re.MULTILINE)
    phony = re.findall(r"^\.PHONY: (\S+)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert listed == phony
    assert {"run", "test", "env", "lint", "clean"} <= set(listed)


def test_no_file_names_a_path_of_one_machine() -> None:
    # Put together here, so that this file does not find itself.
    path_of_a_machine = re.compile(r"(?<![\w.~$}/-])/(?:" + "|".join(["work", "root", "home/\\w+"]) + ")/")
    found = [
        f"{path.relative_to(ROOT)}: {line.strip()}"
        for path in project_files()
        for line in path.read_text(errors="replace").splitlines()
        if path_of_a_machine.search(line)
    ]
    assert found == []


def test_no_file_names_the_host_of_a_package_registry() -> None:
    dot = "."
    hosts = [
        dot.join(labels)
        for labels in (
            ("pypi", "org"),
            ("pythonhosted", "org"),
            ("repo1", "maven", "org"),
            ("repo", "maven", "apache", "org"),
            ("deb", "debian", "org"),
        )
    ]
    found = [
        f"{path.relative_to(ROOT)}: {host}"
        for path in project_files()
        for host in hosts
        if host in path.read_text(errors="replace")
    ]
    assert found == []


def test_no_python_file_has_more_lines_than_one_noun_needs() -> None:
    lines = {
        path.relative_to(ROOT): len(path.read_text().splitlines()) for path in project_files() if path.suffix == ".py"
    }
    assert lines
    long = [f"{path}: {count} lines" for path, count in lines.items() if count > LINES_MAX]
    assert long == [], f"a file of more than {LINES_MAX} lines is usually two nouns: split it"


class TestCheckJava:
    """scripts/check_java.sh, with a path that holds nothing but what a test puts there."""

    @pytest.fixture
    def bin_dir(self, tmp_path: Path) -> Path:
        folder = tmp_path / "bin"
        folder.mkdir()
        for tool in ("sh", "sed", "head", "cp", "chmod"):
            found = shutil.which(tool)
            assert found is not None
            (folder / tool).symlink_to(found)
        self.add(folder, "id", "echo 1000")
        return folder

    @staticmethod
    def add(folder: Path, name: str, body: str) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        script = folder / name
        script.write_text(f"#!/bin/sh\n{body}\n")
        script.chmod(0o755)

    @staticmethod
    def java(version: str) -> str:
        return f"echo 'Picked up JAVA_TOOL_OPTIONS: -Da=b' >&2; echo 'openjdk version \"{version}\"' >&2"

    @staticmethod
    def check(bin_dir: Path, **env: str) -> subprocess.CompletedProcess[str]:
        return run("/bin/sh", "scripts/check_java.sh", env={"PATH": str(bin_dir), **env})

    @pytest.mark.parametrize("version", ["17.0.15", "21", "25-ea"])
    def test_java_17_or_newer_passes_without_a_word(self, bin_dir: Path, version: str) -> None:
        self.add(bin_dir, "java", self.java(version))
        done = self.check(bin_dir)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")

    def test_no_java_is_one_sentence_with_the_remedy(self, bin_dir: Path) -> None:
        done = self.check(bin_dir)
        assert done.returncode == 1
        assert done.stderr.count("\n") == 1
        assert "Spark needs Java 17 or newer, and found none: install one" in done.stderr
        assert "openjdk-17-jre-headless" in done.stderr

    @pytest.mark.parametrize(("version", "shown"), [("11.0.2", "11"), ("1.8.0_392", "8")])
    def test_an_old_java_is_named(self, bin_dir: Path, version: str, shown: str) -> None:
        self.add(bin_dir, "java", self.java(version))
        done = self.check(bin_dir)
        assert done.returncode == 1
        assert f"found only version {shown}: install one" in done.stderr

    def test_java_home_goes_before_the_path_as_in_spark(self, bin_dir: Path, tmp_path: Path) -> None:
        self.add(bin_dir, "java", self.java("17.0.15"))
        self.add(tmp_path / "jdk11" / "bin", "java", self.java("11.0.2"))
        self.add(tmp_path / "jdk21" / "bin", "java", self.java("21.0.1"))
        assert self.check(bin_dir, JAVA_HOME=str(tmp_path / "jdk21")).returncode == 0
        old = self.check(bin_dir, JAVA_HOME=str(tmp_path / "jdk11"))
        assert old.returncode == 1
        assert f"JAVA_HOME={tmp_path / 'jdk11'} holds version 11: set JAVA_HOME to a newer one" in old.stderr
        absent = self.check(bin_dir, JAVA_HOME=str(tmp_path / "nowhere"))
        assert absent.returncode == 1
        assert "holds none" in absent.stderr

    def test_root_on_debian_gets_the_default_java_where_17_is_not_packaged(self, bin_dir: Path) -> None:
        self.add(bin_dir, "id", "echo 0")
        self.add(bin_dir, "java21", self.java("21.0.1"))
        self.add(
            bin_dir,
            "apt-get",
            f'case "$*" in *openjdk-17*) exit 100;; *default-jre*) cp {bin_dir}/java21 {bin_dir}/java;; esac',
        )
        done = self.check(bin_dir)
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout == "Spark needs Java 17 or newer: installing it with apt-get.\n"

    def test_a_failed_installation_still_ends_with_the_remedy(self, bin_dir: Path) -> None:
        self.add(bin_dir, "id", "echo 0")
        self.add(bin_dir, "apt-get", "exit 100")
        done = self.check(bin_dir)
        assert done.returncode == 1
        assert "found none: install one" in done.stderr


class TestCheckPython:
    @staticmethod
    def check(python: Path) -> subprocess.CompletedProcess[str]:
        return run("/bin/sh", "scripts/check_python.sh", str(python))

    def test_this_python_passes_without_a_word(self) -> None:
        done = self.check(Path(sys.executable))
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")

    def test_a_python_that_is_absent_old_or_without_venv_is_one_sentence_with_the_remedy(self, tmp_path: Path) -> None:
        absent = self.check(tmp_path / "python3")
        assert absent.returncode == 1
        assert "was not found: install it, or name another with 'make PYTHON=" in absent.stderr

        TestCheckJava.add(tmp_path, "old", '[ "$1" = --version ] && echo Python 3.9.2; exit 1')
        old = self.check(tmp_path / "old")
        assert old.returncode == 1
        assert "is Python 3.9.2: name a newer one" in old.stderr

        TestCheckJava.add(tmp_path, "bare", 'case "$2" in *venv*) exit 1;; esac')
        bare = self.check(tmp_path / "bare")
        assert bare.returncode == 1
        assert "apt-get install python3-venv" in bare.stderr
        assert all(done.stderr.count("\n") == 1 for done in (absent, old, bare))
