"""The page on StarRocks runs as it stands, and says what there is."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from stormline.state.starrocks import StarRocks, StreamLoadBolt
from tests.starrocks.conftest import TABLES, Emulated

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "starrocks.md").read_text(encoding="utf-8")


def test_the_page_loads_its_orders(emulated: Emulated, tmp_path: Path) -> None:
    emulated.cluster.create_table("shop", "orders", "order_id bigint,item varchar(50)")
    blocks = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    script = tmp_path / "as_on_the_page.py"
    script.write_text("\n".join(blocks), encoding="utf-8")
    env = {**os.environ, "STARROCKS_URL": emulated.server().url}
    done = subprocess.run(
        [sys.executable, str(script)], cwd=tmp_path, capture_output=True, text=True, timeout=240, env=env
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert sorted(emulated.cluster.rows("shop", "orders")) == [(1, "pen"), (2, "ink"), (3, "cap")]


@pytest.mark.parametrize("kind", [StarRocks, StreamLoadBolt])
def test_the_page_says_what_servers_and_bolts_take(kind: Any) -> None:
    code = kind.__init__.__code__
    arguments = code.co_varnames[1 : code.co_argcount + code.co_kwonlyargcount]
    assert [name for name in arguments if f"`{name}`" not in PAGE] == []


def test_the_statements_of_the_page_make_the_tables_of_the_contract_tests() -> None:
    """A user with a real server copies them."""
    made = re.findall(r"CREATE TABLE (\w+) \((.*)\)\n", PAGE)
    assert {table: columns.lower().replace(", ", ",") for table, columns in made} == TABLES
