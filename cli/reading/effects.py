"""Calls that change something outside: a database, a file, a socket, a service. Those that only read are none."""

from __future__ import annotations

import ast
import builtins
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from stormline.cli.reading.code import constant_text
from stormline.cli.reading.libraries import (
    ADDING,
    CONNECTING,
    DATABASES,
    FILE_CHANGES,
    HTTP,
    OPENERS,
    SENDS,
    STORES,
    STORING,
    STORING_BY_NAME,
)
from stormline.cli.reading.reach import Place
from stormline.cli.reading.scope import Scope
from stormline.cli.reading.values import Foreign, Function, Inside, Known, Object, Role, UserClass, Value

_OF_PYTHON = sys.stdlib_module_names | vars(builtins).keys()
_PATHS = re.compile(r"^pathlib\.(_local\.)?(Posix|Windows)?Path\(\)")
_SQL = re.compile(r"\s*(with\b.*\)\s*)?(insert|update|delete|replace|merge|upsert|truncate|copy)\b", re.I | re.S)
_SQL_ONCE = re.compile(r"or ignore|or replace|^\s*replace|on conflict|on duplicate|merge into|upsert|^\s*delete", re.I)
_SQL_ADDS = re.compile(r"=[^,=<>!]*[+]", re.I)


class Again(StrEnum):
    """What the same call does a second time."""

    NOTHING = "nothing: it says what to do where it is there"
    SAME = "it gives the same value, over what came in between"
    MORE = "it adds once more"


@dataclass(frozen=True, slots=True)
class Effect:
    """One call. `ends`: it commits what other calls did."""

    place: Place
    text: str
    again: Again
    ends: bool = False

    @property
    def call(self) -> ast.Call:
        """The call itself."""
        assert isinstance(self.place.node, ast.Call)
        return self.place.node


def effect_at(place: Place) -> Effect | None:
    """Return the effect that a node is; None where it is none, or where reading does not tell."""
    node, scope = place.node, place.scope
    if not isinstance(node, ast.Call):
        return None
    callee = scope.value(node.func)
    if isinstance(callee, Function | Object | Role):
        return None
    last = node.func.attr if isinstance(node.func, ast.Attribute) else ""
    sql = _sql_of(node, scope) if last in ("execute", "executemany", "executescript", "exec_driver_sql") else None
    if sql is not None and _SQL.match(sql):
        return Effect(place, _shown(node), Again.MORE if _adds_to_read(node, scope) else _again(sql))
    again = _again_of_library(callee, node, scope) if isinstance(callee, Foreign) else None
    if again is None and not isinstance(callee, Known):
        again = _again_of_unknown(callee, node)
    if again is not None:
        return Effect(place, _shown(node), Again.MORE if _adds_to_read(node, scope) else again)
    if last == "commit" and not node.args and not isinstance(callee, Known):
        return Effect(place, _shown(node), Again.SAME, ends=True)
    return None


def _again(sql: str) -> Again:
    adds = _SQL_ADDS.search(sql)
    if _SQL_ONCE.search(sql) and not adds:
        return Again.NOTHING
    return Again.SAME if sql.strip().lower().startswith(("update", "copy", "truncate")) and not adds else Again.MORE


def _again_of_library(callee: Foreign, node: ast.Call, scope: Scope) -> Again | None:
    """Return what a call of a library does a second time; None where it changes nothing outside, as far as is known."""
    dotted = _PATHS.sub("pathlib.Path()", callee.dotted)
    top, last = dotted.partition(".")[0].rstrip("()"), dotted.rpartition(".")[2]
    if dotted in OPENERS:
        return _opened(node, scope, 0 if dotted == "pathlib.Path().open" else 1)
    if dotted in FILE_CHANGES:
        return Again.SAME
    if dotted in SENDS or (top == "socket" and last in ("send", "sendall", "sendto", "sendmsg", "sendfile")):
        return Again.MORE
    if top in HTTP or dotted.startswith("http.client."):
        method = _http_method(node) if last == "request" else last.upper()
        return {"POST": Again.MORE, "PATCH": Again.MORE, "PUT": Again.SAME, "DELETE": Again.SAME}.get(method)
    if dotted == "urllib.request.urlopen":
        return Again.MORE if _sends_data(node, scope) else None
    if last in ("write", "writelines", "writerow", "writerows") or dotted == "print":
        return Again.MORE if _writes_file(callee, node, scope) else None
    if "()" not in dotted:
        return None
    if top in DATABASES and (last == "executemany" and _sql_of(node, scope) is None):
        return Again.SAME
    connection = top in STORES or (top not in sys.stdlib_module_names and CONNECTING.search(dotted))
    if connection and STORING.match(last):
        return Again.MORE if ADDING.search(last) else Again.SAME
    return None


def _again_of_unknown(callee: Foreign | Inside | UserClass | None, node: ast.Call) -> Again | None:
    """Return what a call does a second time of something that nothing is known of but its name: `self.db.put(row)`."""
    if not isinstance(node.func, ast.Attribute) or isinstance(callee, Inside | UserClass):
        return None
    if isinstance(callee, Foreign) and callee.dotted.partition(".")[0].rstrip("()") in _OF_PYTHON:
        return None
    name = node.func.value.attr if isinstance(node.func.value, ast.Attribute) else ast.unparse(node.func.value)
    if node.func.attr not in STORING_BY_NAME.get(name.lstrip("_"), ()):
        return None
    return Again.MORE if ADDING.search(node.func.attr) else Again.SAME


def _adds_to_read(node: ast.Call, scope: Scope) -> bool:
    """Return whether a call stores a sum with something that was read from the same place before."""
    if not isinstance(node.func, ast.Attribute):
        return False
    place = ast.unparse(node.func.value)
    args = [*node.args, *(keyword.value for keyword in node.keywords)]
    sums = [child for arg in args for child in _expanded(arg, scope, 0) if isinstance(child, ast.BinOp)]
    reads = [child for one in sums for child in _expanded(one, scope, 0) if isinstance(child, ast.Call)]
    return any(isinstance(read.func, ast.Attribute) and ast.unparse(read.func.value) == place for read in reads)


def _expanded(node: ast.expr, scope: Scope, depth: int) -> Iterator[ast.AST]:
    """Yield all nodes of an expression, and of those that its local names stand for."""
    for child in ast.walk(node):
        yield child
        if isinstance(child, ast.Name) and depth < 3:
            for made in scope.assigned.get(child.id, ()):
                yield from _expanded(made, scope, depth + 1)


def _sends_data(node: ast.Call, scope: Scope) -> bool:
    calls = [node]
    if node.args and isinstance(request := scope.value(node.args[0]), Foreign) and request.call is not None:
        calls.append(request.call)
    return any(len(call.args) > 1 or any(keyword.arg == "data" for keyword in call.keywords) for call in calls)


def _writes_file(callee: Foreign, node: ast.Call, scope: Scope) -> bool:
    """Return whether it goes to a file that was opened for it before; where it is opened here, opening it tells."""
    file: Value | None = callee
    if callee.dotted == "print":
        given = [keyword.value for keyword in node.keywords if keyword.arg == "file"]
        file = scope.value(given[0]) if given else None
    elif callee.dotted.startswith("csv.") and callee.call is not None and callee.call.args:
        file = scope.value(callee.call.args[0])
    if not isinstance(file, Foreign) or file.call is None:
        return False
    opener = file.dotted.partition("()")[0]
    opened_here = any(child is file.call for child in ast.walk(scope.code.node))
    return opener in OPENERS and not opened_here and _opened(file.call, scope, 1) is not None


def _opened(node: ast.Call, scope: Scope, at: int) -> Again | None:
    given = node.args[at] if len(node.args) > at else None
    given = next((keyword.value for keyword in node.keywords if keyword.arg == "mode"), given)
    mode = _text_of(given, scope) if given is not None else None
    if mode is None or not set("wax+") & set(mode):
        return None
    if at and node.args and _is_temporary(node.args[0], scope):
        return None
    return Again.MORE if "a" in mode else Again.SAME


def _is_temporary(node: ast.expr, scope: Scope) -> bool:
    for child in ast.walk(node):
        if isinstance(child, ast.Name | ast.Attribute):
            value = scope.value(child)
            if (isinstance(value, Foreign) and value.dotted.startswith("tempfile.")) or ast.unparse(
                child
            ) == "os.devnull":
                return True
            if isinstance(child, ast.Name) and any(_is_temporary(v, scope) for v in scope.assigned.get(child.id, ())):
                return True
    return False


def _http_method(node: ast.Call) -> str:
    return str(node.args[0].value).upper() if node.args and isinstance(node.args[0], ast.Constant) else ""


def _sql_of(node: ast.Call, scope: Scope) -> str | None:
    return _text_of(node.args[0], scope) if node.args else None


def _text_of(node: ast.expr, scope: Scope) -> str | None:
    text = constant_text(node)
    if text is not None:
        return text
    if isinstance(node, ast.Name) and node.id in scope.assigned:
        texts = {constant_text(value) for value in scope.assigned[node.id]}
        return texts.pop() if len(texts) == 1 else None
    value = scope.value(node)
    if isinstance(value, Known) and type(value.value) is str:
        return value.value
    if isinstance(node, ast.Call) and node.args and isinstance(value, Foreign) and value.dotted.endswith("text()"):
        return _text_of(node.args[0], scope)
    return None


def _shown(node: ast.Call) -> str:
    first = constant_text(node.args[0]) if node.args else None
    given = "…"
    if first is not None:
        words = " ".join(first.split())
        given = repr(words if len(words) <= 40 else f"{words[:39]}…") + (", …" if node.args[1:] else "")
    text = f"{ast.unparse(node.func)}({given})"
    return text if len(text) <= 90 else f"{text[:89]}…"
