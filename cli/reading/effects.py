"""Calls that change something outside: a database, a file, a socket, a service. Those that only read are none."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from enum import Enum

from stormline.cli.reading.code import constant_text
from stormline.cli.reading.reach import Place
from stormline.cli.reading.scope import Scope
from stormline.cli.reading.values import Foreign, Function, Known, Object, Role

HTTP = frozenset({"requests", "httpx", "aiohttp", "requests_futures", "niquests"})
DATABASES = frozenset(
    "sqlite3 apsw psycopg psycopg2 pg8000 asyncpg pymysql MySQLdb mysql mariadb pyodbc cx_Oracle oracledb duckdb pymssql "
    "clickhouse_driver clickhouse_connect sqlalchemy cassandra phoenixdb snowflake trino peewee dataset records".split()
)
STORES = frozenset(
    "redis rediscluster fakeredis valkey pymemcache memcache pylibmc pymongo happybase elasticsearch opensearchpy boto3 "
    "botocore kafka confluent_kafka aiokafka pika kombu couchdb influxdb influxdb_client kazoo stomp zmq aerospike neo4j "
    "google azure pulsar nats shelve dbm diskcache plyvel rocksdb lmdb statsd".split()
)
_FILES = frozenset(
    "os.remove os.unlink os.rename os.replace os.truncate os.write shutil.move shutil.copy shutil.copy2 shutil.copyfile "
    "shutil.rmtree pathlib.Path().write_text pathlib.Path().write_bytes pathlib.Path().unlink pathlib.Path().rename "
    "pathlib.Path().replace smtplib.SMTP().send_message smtplib.SMTP().sendmail smtplib.SMTP_SSL().send_message".split()
)
_PATHS = re.compile(r"^pathlib\.(_local\.)?(Posix|Windows)?Path\(\)")
_OPENERS = frozenset({"open", "io.open", "codecs.open", "gzip.open", "bz2.open", "lzma.open"})
_STORING = re.compile(
    r"(put|set|add|insert|update|delete|replace|incr|decr|append|push|publish|send|produce|index|bulk|create|upsert|save"
    r"|write|store|remove|[hsz](set|add|incr|rem|del)|[lr]push|x?add|mset|m?setex|setnx|getset|basic_publish)"
    r"(_?(one|many|all|by|item|items|row|rows|multi|object|async|message|nx|ex|float|document|documents))*$"
)
_SQL = re.compile(r"\s*(with\b.*\)\s*)?(insert|update|delete|replace|merge|upsert|truncate|copy)\b", re.I | re.S)
_SQL_ONCE = re.compile(r"or ignore|or replace|^\s*replace|on conflict|on duplicate|merge into|upsert|^\s*delete", re.I)
_SQL_ADDS = re.compile(r"=[^,=<>!]*[+]", re.I)


class Again(str, Enum):
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
        return Effect(place, _shown(node), _again(sql))
    if isinstance(callee, Foreign) and (effect := _library_effect(place, node, callee)) is not None:
        return effect
    if last == "commit" and not node.args and not isinstance(callee, Known):
        return Effect(place, _shown(node), Again.SAME, ends=True)
    return None


def _again(sql: str) -> Again:
    adds = _SQL_ADDS.search(sql)
    if _SQL_ONCE.search(sql) and not adds:
        return Again.NOTHING
    return Again.SAME if sql.strip().lower().startswith(("update", "copy", "truncate")) and not adds else Again.MORE


def _library_effect(place: Place, node: ast.Call, callee: Foreign) -> Effect | None:
    dotted = _PATHS.sub("pathlib.Path()", callee.dotted)
    top, last = dotted.partition(".")[0].rstrip("()"), dotted.rpartition(".")[2]
    if dotted in _OPENERS or dotted == "pathlib.Path().open":
        return _opened(place, node, dotted)
    if dotted in _FILES:
        return Effect(place, _shown(node), Again.MORE if dotted.startswith("smtplib") or dotted == "os.write" else Again.SAME)
    if top in HTTP and (last in ("post", "put", "patch", "delete") or _method_of(node) in ("POST", "PUT", "PATCH")):
        return Effect(place, _shown(node), Again.SAME if last in ("put", "delete") else Again.MORE)
    if dotted == "urllib.request.urlopen":
        data = len(node.args) > 1 or any(keyword.arg == "data" for keyword in node.keywords)
        return Effect(place, _shown(node), Again.MORE) if data else None
    if dotted.startswith("socket.") and last in ("send", "sendall", "sendto", "sendmsg", "sendfile"):
        return Effect(place, _shown(node), Again.MORE)
    if dotted.startswith("http.client.") and _method_of(node) in ("POST", "PUT", "PATCH", "DELETE"):
        return Effect(place, _shown(node), Again.MORE)
    if "()" not in dotted:
        return None
    if top in DATABASES:
        if last == "executemany" and _sql_of(node, place.scope) is None:
            return Effect(place, _shown(node), Again.SAME)
        return Effect(place, _shown(node), Again.SAME) if last in ("to_sql", "bulk_save_objects") else None
    if top in STORES and _STORING.match(last):
        adds = re.search(r"incr|decr|append|push|publish|send|produce|xadd|insert", last)
        return Effect(place, _shown(node), Again.MORE if adds else Again.SAME)
    return None


def _opened(place: Place, node: ast.Call, dotted: str) -> Effect | None:
    at = 0 if dotted == "pathlib.Path().open" else 1
    given = node.args[at] if len(node.args) > at else None
    given = next((keyword.value for keyword in node.keywords if keyword.arg == "mode"), given)
    mode = _text_of(given, place.scope) if given is not None else None
    if mode is None or not set("wax+") & set(mode):
        return None
    if at and node.args and _is_temporary(node.args[0], place.scope):
        return None
    return Effect(place, _shown(node), Again.MORE if "a" in mode else Again.SAME)


def _is_temporary(node: ast.expr, scope: Scope) -> bool:
    for child in ast.walk(node):
        if isinstance(child, ast.Name | ast.Attribute):
            value = scope.value(child)
            if (isinstance(value, Foreign) and value.dotted.startswith("tempfile.")) or ast.unparse(child) == "os.devnull":
                return True
            if isinstance(child, ast.Name) and any(_is_temporary(v, scope) for v in scope.assigned.get(child.id, ())):
                return True
    return False


def _method_of(node: ast.Call) -> str:
    last = node.func.attr if isinstance(node.func, ast.Attribute) else ""
    if last == "request" and node.args and isinstance(node.args[0], ast.Constant):
        return str(node.args[0].value).upper()
    return ""


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
    if isinstance(value, Known) and isinstance(value.value, str):
        return value.value
    if isinstance(node, ast.Call) and node.args and isinstance(value, Foreign) and value.dotted.endswith("text()"):
        return _text_of(node.args[0], scope)
    return None


def _shown(node: ast.Call) -> str:
    text = f"{ast.unparse(node.func)}(…)"
    first = constant_text(node.args[0]) if node.args else None
    if first is not None:
        words = " ".join(first.split())
        text = f"{ast.unparse(node.func)}({(words if len(words) <= 40 else words[:37] + '…')!r}{', …' if node.args[1:] else ''})"
    return text if len(text) <= 90 else text[:89] + "…"
