from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from stormline.cli.bundle import IN_FALLBACK, bundle_files, project_roots, write_bundle, write_whole, write_zip
from stormline.cli.errors import CannotBundle, CannotWriteBundle
from stormline.topology.compiler import compile_topology
from stormline.topology.packing import FALLBACK
from stormline.topology.plan import Plan
from tests.topologies import cluster_sum

ROOT = Path(__file__).resolve().parents[3]
MODULE = "tests.topologies.cluster_sum"


@pytest.fixture
def plan() -> Plan:
    return compile_topology(cluster_sum.topology())


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user's project on the path."""
    folder = tmp_path / "project"
    folder.mkdir()
    monkeypatch.syspath_prepend(folder)
    return folder


def write(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


def bundled(module: str, *py_files: str) -> set[str]:
    """Return the files that are the user's own."""
    files, _ = bundle_files(module, py_files)
    ours = {"stormline", "click", "cloudpickle", "kazoo", "networkx", "rich", FALLBACK}
    return {name for name in files if name.partition("/")[0] not in ours}


class TestContent:
    def test_stormline_is_there_as_real_files_under_the_names_it_is_imported_by(self) -> None:
        files, _ = bundle_files(MODULE)
        for room in ("topology/builder", "bolts/base", "spouts/memory", "runtime/spark/worker", "cli/entry"):
            assert files[f"stormline/{room}.py"] == (ROOT / f"{room}.py").read_bytes()

    def test_the_users_module_brings_what_it_imports_and_no_more(self) -> None:
        assert bundled(MODULE) == {
            "tests/__init__.py",
            "tests/topologies/__init__.py",
            "tests/topologies/cluster_sum.py",
            "tests/topologies/cluster_sum_rows.py",
        }

    def test_dependencies_come_without_their_tests(self) -> None:
        files, _ = bundle_files(MODULE)
        assert {"kazoo/client.py", "networkx/__init__.py", "cloudpickle/cloudpickle.py"} <= set(files)
        assert not [name for name in files if name.startswith("networkx/") and "/tests/" in name]

    def test_msgpack_is_there_but_not_where_it_would_hide_an_installed_one(self) -> None:
        files, _ = bundle_files(MODULE)
        assert IN_FALLBACK == ("msgpack",)
        assert f"{FALLBACK}/msgpack/fallback.py" in files
        assert not [name for name in files if name.startswith("msgpack")]

    def test_there_are_only_sources(self) -> None:
        files, _ = bundle_files(MODULE)
        assert {Path(name).suffix for name in files} == {".py"}


class TestUsersModules:
    def test_imports_are_followed_in_functions_by_name_from_packages_and_relatively(self, project: Path) -> None:
        write(project, {
            "main.py": "import a.b\nfrom c import d\n",
            "a/__init__.py": "from . import sibling\n",
            "a/b.py": "def late():\n    from .deep.er import thing\n",
            "a/sibling.py": "",
            "a/deep/__init__.py": "",
            "a/deep/er.py": "from ..unused_name import x\n",
            "a/stranger.py": "",
            "c/__init__.py": "",
            "c/d.py": "from c import *\n",
            "never.py": "",
        })  # fmt: skip
        assert bundled("main") == {
            "main.py", "a/__init__.py", "a/b.py", "a/sibling.py", "a/deep/__init__.py", "a/deep/er.py",
            "c/__init__.py", "c/d.py",
        }  # fmt: skip

    def test_a_package_without_init_is_importable_from_the_zip(self, project: Path, tmp_path: Path) -> None:
        write(project, {"space/part/main.py": "import space.other\nVALUE = 7\n", "space/other.py": ""})
        files, _ = bundle_files("space.part.main")
        assert {"space/", "space/part/", "space/part/main.py", "space/other.py"} <= set(files)
        write_zip(tmp_path / "b.zip", files)
        assert run_with(tmp_path / "b.zip", "import space.part.main as m; print(m.VALUE)") == "7"

    def test_what_must_be_installed_is_named_with_who_imports_it(self, project: Path) -> None:
        write(project, {
            "main.py": "import json, pandas, helper, pyspark, msgpack, stormline\n",
            "helper.py": "import nowhere.at.all\n",
        })  # fmt: skip
        _, missing = bundle_files("main")
        assert missing == {"pandas": "main", "nowhere": "helper"}

    def test_an_installed_module_brings_its_whole_package(self, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        write(project, {"site-packages/mine/__init__.py": "", "site-packages/mine/topo.py": "import re\n"})
        monkeypatch.syspath_prepend(project / "site-packages")
        assert bundled("mine.topo") == {"mine/__init__.py", "mine/topo.py"}

    def test_a_compiled_extension_is_refused(self, project: Path) -> None:
        write(project, {"main.py": "import fast\n", "fast.cpython-311-x86_64-linux-gnu.so": ""})
        with pytest.raises(CannotBundle, match=r"fast\.cpython.* is a compiled extension, .* install its package on"):
            bundle_files("main")

    def test_roots_are_neither_pythons_own_nor_installed(self) -> None:
        roots = project_roots()
        assert ROOT in roots
        assert not [root for root in roots if "site-packages" in root.parts or root == Path(os.__file__).parent]


class TestPyFiles:
    @pytest.fixture(autouse=True)
    def main(self, project: Path) -> None:
        write(project, {"main.py": ""})

    def test_modules_folders_and_archives_go_into_the_zip(self, tmp_path: Path) -> None:
        write(tmp_path, {"one.py": "", "two/__init__.py": "", "two/tests/x.py": "", "two/data.txt": ""})
        with zipfile.ZipFile(tmp_path / "three-1.0-py3-none-any.whl", "w") as wheel:
            wheel.writestr("three/__init__.py", "")
            wheel.writestr("three/data.json", "{}")
            wheel.writestr("three/__pycache__/x.pyc", "")
        given = (tmp_path / "one.py", tmp_path / "two", tmp_path / "three-1.0-py3-none-any.whl")
        assert bundled("main", *map(str, given)) == {
            "main.py", "one.py", "two/__init__.py", "two/tests/x.py", "three/__init__.py", "three/data.json",
        }  # fmt: skip

    def test_what_they_bring_is_not_missing(self, project: Path, tmp_path: Path) -> None:
        write(project, {"main.py": "import one\n"})
        write(tmp_path, {"one.py": ""})
        assert bundle_files("main", [str(tmp_path / "one.py")])[1] == {}

    def test_a_file_that_does_not_exist_or_fit_is_refused(self, tmp_path: Path) -> None:
        for given in (tmp_path / "absent.zip", tmp_path / "absent.py", tmp_path / "x.tar.gz"):
            with pytest.raises(CannotBundle, match=r"expected a \.py file, the folder of a package, or a \.zip"):
                bundle_files("main", [str(given)])

    def test_an_archive_with_an_extension_is_refused(self, tmp_path: Path) -> None:
        with zipfile.ZipFile(tmp_path / "fast.whl", "w") as wheel:
            wheel.writestr("fast/core.so", "")
        with pytest.raises(CannotBundle, match=r"fast\.whl/fast/core\.so is a compiled extension"):
            bundle_files("main", [str(tmp_path / "fast.whl")])

    def test_an_archive_that_leads_elsewhere_is_refused(self, tmp_path: Path) -> None:
        with zipfile.ZipFile(tmp_path / "evil.zip", "w") as archive:
            archive.writestr("../evil.py", "")
        with pytest.raises(CannotBundle, match=r"'\.\./evil\.py' leads out of the archive"):
            bundle_files("main", [str(tmp_path / "evil.zip")])

    def test_two_versions_of_one_file_are_refused(self, tmp_path: Path) -> None:
        write(tmp_path, {"x/one.py": "1", "y/one.py": "2"})
        with pytest.raises(CannotBundle, match=r"y/one\.py brings 'one\.py', of which the bundle has another version"):
            bundle_files("main", [str(tmp_path / "x/one.py"), str(tmp_path / "y/one.py")])

    def test_a_zip_with_a_part_of_the_projects_package_hides_none_of_the_rest(
        self, project: Path, tmp_path: Path
    ) -> None:
        write(project, {"mine/__init__.py": "", "mine/topo.py": "import mine.helper, far\n", "mine/helper.py": ""})
        with zipfile.ZipFile(tmp_path / "more.zip", "w") as archive:
            archive.writestr("mine/gen.py", "")
            archive.writestr("far/__init__.py", "")
        files, missing = bundle_files("mine.topo", [str(tmp_path / "more.zip")])
        mine = {name for name in files if name.startswith(("mine/", "far/"))}
        assert mine == {"mine/__init__.py", "mine/topo.py", "mine/helper.py", "mine/gen.py", "far/__init__.py"}
        assert missing == {}

    def test_a_module_that_is_no_python_is_refused_with_who_imports_it(self, project: Path) -> None:
        write(project, {"main.py": "def late():\n    import broken\n", "broken.py": "a = 1\ndef f(:\n"})
        with pytest.raises(
            CannotBundle, match=r"broken\.py, line 2, is no Python \(.*\), and main imports it: mend it"
        ):
            bundle_files("main")


class TestWritten:
    def test_a_folder_that_cannot_be_is_named(self, plan: Plan, tmp_path: Path) -> None:
        (tmp_path / "file").touch()
        with pytest.raises(
            CannotWriteBundle, match=r"written into .*/file/sub \(Not a directory\); name another folder"
        ):
            write_bundle(MODULE, None, plan, tmp_path / "file" / "sub")

    def test_who_may_read_it_is_as_the_umask_says(self, tmp_path: Path) -> None:
        before = os.umask(0o077)
        try:
            write_whole(tmp_path / "private", b"")
            os.umask(0o022)
            write_whole(tmp_path / "public", b"")
            assert os.umask(0o022) == 0o022
        finally:
            os.umask(before)
        assert [(tmp_path / name).stat().st_mode & 0o777 for name in ("private", "public")] == [0o600, 0o644]

    def test_the_same_sources_give_the_same_bytes(self, plan: Plan, tmp_path: Path) -> None:
        first, _ = write_bundle(MODULE, None, plan, tmp_path / "1")
        second, _ = write_bundle(MODULE, None, plan, tmp_path / "2")
        for one, two in ((first.zip, second.zip), (first.entry, second.entry), (first.plan, second.plan)):
            assert one.read_bytes() == two.read_bytes()
        with zipfile.ZipFile(first.zip) as archive:
            assert archive.namelist() == sorted(archive.namelist())
            assert {info.date_time for info in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}

    def test_nothing_names_a_path_of_this_machine(self, plan: Plan, tmp_path: Path) -> None:
        bundle, _ = write_bundle(MODULE, None, plan, tmp_path)
        paths = [str(path).encode() for path in (ROOT, tmp_path, Path(sys.prefix))]
        with zipfile.ZipFile(bundle.zip) as archive:
            contents = {name: archive.read(name) for name in archive.namelist()}
        contents |= {bundle.entry.name: bundle.entry.read_bytes(), bundle.plan.name: bundle.plan.read_bytes()}
        assert not [(name, path) for name, content in contents.items() for path in paths if path in content]

    def test_the_folder_holds_zip_entry_and_plan(self, plan: Plan, tmp_path: Path) -> None:
        write_bundle(MODULE, "topology", plan, tmp_path)
        assert sorted(path.name for path in tmp_path.iterdir()) == [
            "cluster-sum-entry.py", "cluster-sum-plan.txt", "cluster-sum.zip",
        ]  # fmt: skip
        assert f"main('{MODULE}:topology')" in (tmp_path / "cluster-sum-entry.py").read_text()
        assert "topology cluster-sum" in (tmp_path / "cluster-sum-plan.txt").read_text()

    def test_the_zip_suffices_for_a_bare_python_and_an_installed_msgpack_wins(self, plan: Plan, tmp_path: Path) -> None:
        bundle, _ = write_bundle(MODULE, None, plan, tmp_path)
        code = (
            "import stormline.runtime.spark.worker, stormline.cli.entry, tests.topologies.cluster_sum as m\n"
            "from stormline.topology.compiler import compile_topology\n"
            "from stormline.topology.packing import msgpack\n"
            "assert m.__file__.startswith(sys.path[1]), m.__file__\n"
            "compile_topology(m.topology())\n"
            "print(msgpack.packb([1]), msgpack.__file__.split('.zip')[-1])"
        )
        without = run_with(bundle.zip, code)
        assert without == f"b'\\x91\\x01' /{FALLBACK}/msgpack/__init__.py"
        write(tmp_path, {"installed/msgpack/__init__.py": "packb = lambda value: 'mine'\n"})
        with_one = run_with(bundle.zip, code, tmp_path / "installed")
        assert with_one == f"mine {tmp_path}/installed/msgpack/__init__.py"


def run_with(zip_file: Path, code: str, *after: Path) -> str:
    """Run code in a Python that has nothing on its path but its own library, the zip, and what comes after."""
    path = [str(zip_file), *map(str, after)]
    start = f"import sys; sys.path[1:1] = [{path[0]!r}]; sys.path += {path[1:]!r}\n"
    done = subprocess.run([sys.executable, "-I", "-S", "-c", start + code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_a_file_is_written_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "t.zip"
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda byte: write_whole(path, bytes([byte]) * 100_000), range(40)))
    assert len(path.read_bytes()) == 100_000
    assert len(set(path.read_bytes())) == 1

    def full(partial: str, path: Path) -> None:
        raise OSError("no space left")

    monkeypatch.setattr("os.replace", full)
    with pytest.raises(OSError, match="no space left"):
        write_whole(path, b"")
    assert list(tmp_path.iterdir()) == [path]
