"""The keys of the configuration: what each takes, what holds where it is not set, and a check of all that are ours."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from stormline.topology.errors import InvalidConfig, UnknownConfigKey, did_you_mean
from stormline.topology.identifiers import NAME_CHARS_MAX, is_dotted, is_host, is_znode_path
from stormline.topology.registration import Registration
from stormline.topology.secrets import is_reference

MAX_SPOUT_PENDING = "topology.max.spout.pending"
MESSAGE_TIMEOUT_SECS = "topology.message.timeout.secs"
ENABLE_MESSAGE_TIMEOUTS = "topology.enable.message.timeouts"
MAX_BATCH_ATTEMPTS = "topology.max.batch.attempts"
MAX_TASK_PARALLELISM = "topology.max.task.parallelism"
DEBUG = "topology.debug"
WORKERS = "topology.workers"
NAME = "topology.name"
TRANSACTIONAL_ID = "topology.transactional.id"
TASKS = "topology.tasks"
KRYO_REGISTER = "topology.kryo.register"
AUTO_TASK_HOOKS = "topology.auto.task.hooks"
TICK_TUPLE_FREQ_SECS = "topology.tick.tuple.freq.secs"
COMMIT_PLACEMENT = "topology.commit.placement"
COMMIT_GROUP_MAX = "topology.commit.group.max"
SINK_SETTLED = "topology.sink.settled"
SINK_SWEEP_SECS = "topology.sink.sweep.secs"
ZOOKEEPER_ROOT = "transactional.zookeeper.root"
ZOOKEEPER_SERVERS = "transactional.zookeeper.servers"
ZOOKEEPER_PORT = "transactional.zookeeper.port"
STORM_ZOOKEEPER_SERVERS = "storm.zookeeper.servers"
STORM_ZOOKEEPER_PORT = "storm.zookeeper.port"
ZOOKEEPER_AUTH_SCHEME = "storm.zookeeper.auth.scheme"
ZOOKEEPER_AUTH_PAYLOAD = "storm.zookeeper.auth.payload"
ZOOKEEPER_SSL_ENABLE = "storm.zookeeper.ssl.enable"
ZOOKEEPER_SSL_HOSTNAME_VERIFICATION = "storm.zookeeper.ssl.hostnameVerification"
ZOOKEEPER_SSL_CA = "transactional.zookeeper.ssl.ca"
ZOOKEEPER_SSL_CERTIFICATE = "transactional.zookeeper.ssl.certificate"
ZOOKEEPER_SSL_KEY = "transactional.zookeeper.ssl.key"
ZOOKEEPER_SSL_KEY_PASSWORD = "transactional.zookeeper.ssl.key.password"
ZOOKEEPER_SESSION_TIMEOUT_MS = "storm.zookeeper.session.timeout"
ZOOKEEPER_CONNECTION_TIMEOUT_MS = "storm.zookeeper.connection.timeout"


@dataclass(frozen=True, slots=True)
class Key:
    """One known key: what it takes, what holds where it is not set, and what it means."""

    kind: str
    default: Any
    meaning: str
    used: bool = True


def _ignored(kind: str, meaning: str) -> Key:
    return Key(kind, None, f"{meaning} Accepted for ported topologies, without effect on Spark.", used=False)


KNOWN_KEYS: dict[str, Key] = {
    MAX_SPOUT_PENDING: Key(
        "count", 16, "Transactions that may be active at once, and so the most that one wave holds."
    ),
    MESSAGE_TIMEOUT_SECS: Key(
        "seconds", 30, "Seconds an attempt may take for a phase before it fails and is replayed."
    ),
    ENABLE_MESSAGE_TIMEOUTS: Key("flag", True, "Whether attempts time out at all."),
    MAX_BATCH_ATTEMPTS: Key(
        "count or none", None, "Failed attempts of one batch after which the topology stops; unlimited where not set."
    ),
    MAX_TASK_PARALLELISM: Key("count or none", None, "Upper bound of the tasks of any component."),
    DEBUG: Key("flag", False, "Log every tuple emitted."),
    WORKERS: Key(
        "count or none", None, "Spark tasks a stage is packed into; as many as Spark has cores where not set."
    ),
    COMMIT_PLACEMENT: Key(
        "placement",
        "driver",
        "Where a committer, or a bolt downstream of one, finishes: `driver`; or `executors`, in a Spark job of each "
        "commit's own, which pays where commits are heavy. For the topology, or for one such bolt.",
    ),
    COMMIT_GROUP_MAX: Key(
        "group size",
        64,
        "Transactions that wait for their commits and may become durable in one step, where all their effects are in "
        "one store (`effects_in`; see [state](state.md)); 1: each by itself.",
    ),
    SINK_SETTLED: Key(
        "labels",
        (),
        "Labels of transactions that a two-phase sink has lost, and of which a person has settled by hand what becomes "
        "of their rows: the topology goes on without them. See [two-phase commit](two_phase_commit.md).",
    ),
    SINK_SWEEP_SECS: Key(
        "seconds",
        60,
        "Seconds between two looks through what two-phase sinks list as pre-committed, for what was left behind; see "
        "[two-phase commit](two_phase_commit.md).",
    ),
    NAME: Key(
        "name or none",
        None,
        "What the topology is called in Spark's UI, where it is submitted without a name; its id where not set. "
        "Every `conf` has the name that it was submitted under.",
    ),
    TRANSACTIONAL_ID: Key(
        "name or none", None, "Id of the topology. Every `conf` has it; whoever sets it can only set that."
    ),
    KRYO_REGISTER: Key("registrations", (), "Classes that tuples and metadata may hold; see register_serialization."),
    ZOOKEEPER_ROOT: Key("path", "/transactional", "Znode below which all topologies keep their state."),
    ZOOKEEPER_SERVERS: Key("hosts or none", None, "ZooKeeper's hosts; storm.zookeeper.servers where not set."),
    ZOOKEEPER_PORT: Key("port or none", None, "ZooKeeper's port; storm.zookeeper.port, else 2181, where not set."),
    STORM_ZOOKEEPER_SERVERS: Key("hosts or none", None, "ZooKeeper's hosts, as in Storm's own configuration."),
    STORM_ZOOKEEPER_PORT: Key("port or none", None, "ZooKeeper's port, as in Storm's own configuration."),
    ZOOKEEPER_SESSION_TIMEOUT_MS: Key(
        "count",
        20000,
        "Milliseconds after which a silent driver loses its session; 10000 for the embedded ZooKeeper, which keeps it.",
    ),
    ZOOKEEPER_CONNECTION_TIMEOUT_MS: Key("count", 15000, "Milliseconds to wait for the first connection."),
    ZOOKEEPER_AUTH_SCHEME: Key(
        "auth scheme or none",
        None,
        "How the driver proves to ZooKeeper who it is: `digest`, or `sasl` (DIGEST-MD5; needs `stormline[sasl]`). All "
        "znodes are then its own alone; see [security](security.md).",
    ),
    ZOOKEEPER_AUTH_PAYLOAD: Key(
        "secret or none", None, "Where `user:password` for that is kept: `env:NAME` or `file:PATH`."
    ),
    ZOOKEEPER_SSL_ENABLE: Key("flag", False, "Whether to speak TLS with ZooKeeper; its certificate is verified."),
    ZOOKEEPER_SSL_HOSTNAME_VERIFICATION: Key(
        "flag", True, "Whether that certificate must name the host that was connected to."
    ),
    ZOOKEEPER_SSL_CA: Key(
        "file or none", None, "PEM file of the authorities that may have signed it; the system's where not set."
    ),
    ZOOKEEPER_SSL_CERTIFICATE: Key(
        "file or none", None, "PEM file of the driver's own certificate, where ZooKeeper asks for one."
    ),
    ZOOKEEPER_SSL_KEY: Key("file or none", None, "PEM file of that certificate's private key."),
    ZOOKEEPER_SSL_KEY_PASSWORD: Key(
        "secret or none", None, "Where the password of that key is kept: `env:NAME` or `file:PATH`."
    ),
    "storm.zookeeper.root": _ignored("any", "Storm's own znodes; ours are below transactional.zookeeper.root."),
    "storm.zookeeper.superACL": _ignored("any", "Storm's Nimbus; nobody is given rights beside the creator."),
    "storm.zookeeper.retry.times": _ignored("any", "Storm's ZooKeeper client."),
    "storm.zookeeper.retry.interval": _ignored("any", "Storm's ZooKeeper client."),
    "storm.zookeeper.retry.intervalceiling.millis": _ignored("any", "Storm's ZooKeeper client."),
    TASKS: Key("count or none", None, "Tasks of each component, or of the one it is set for; its parallelism if not."),
    "topology.acker.executors": _ignored("count or zero", "Storm's ackers."),
    "topology.eventlogger.executors": _ignored("count or zero", "Storm's event loggers."),
    "topology.stats.sample.rate": _ignored("number", "Storm's sampling."),
    "topology.skip.missing.kryo.registrations": _ignored("flag", "Storm's kryo."),
    "topology.fall.back.on.java.serialization": _ignored("flag", "Storm's kryo; Stormline never falls back."),
    "topology.kryo.factory": _ignored("text", "Storm's kryo."),
    "topology.kryo.decorators": _ignored("any", "Storm's kryo."),
    "topology.worker.childopts": _ignored("any", "Storm's JVMs."),
    "topology.worker.gc.childopts": _ignored("any", "Storm's JVMs."),
    "topology.executor.receive.buffer.size": _ignored("count", "Storm's queues."),
    "topology.executor.send.buffer.size": _ignored("count", "Storm's queues."),
    "topology.transfer.buffer.size": _ignored("count", "Storm's queues."),
    AUTO_TASK_HOOKS: Key(
        "hooks",
        None,
        "Classes of task hooks, or their names `package.module.Class`, of which every task gets one; see "
        "[metrics](metrics.md).",
    ),
    TICK_TUPLE_FREQ_SECS: Key(
        "no ticks",
        None,
        "Only None is taken: there are no tick tuples. `finish_batch` runs once a batch in every task, with no tuples "
        "too; do there what a tick did.",
    ),
    "topology.metrics.consumer.register": _ignored("any", "Storm's metrics."),
    "topology.priority": _ignored("any", "Storm's scheduler."),
    "topology.scheduler.strategy": _ignored("any", "Storm's scheduler."),
    "topology.optimize": _ignored("flag", "Storm's early optimizer."),
    "topology.spout.wait.strategy": _ignored("text", "Storm's spout loop."),
    "topology.sleep.spout.wait.strategy.time.ms": _ignored("count or zero", "Storm's spout loop."),
    "topology.auto-credentials": _ignored("any", "Storm's credentials."),
    "topology.backpressure.enable": _ignored("any", "Storm's queues."),
    "topology.bolts.outgoing.overflow.buffer.enable": _ignored("any", "Storm's queues."),
    "topology.builtin.metrics.bucket.size.secs": _ignored("any", "Storm's metrics."),
    "topology.classpath": _ignored("any", "Storm's JVMs."),
    "topology.component.cpu.pcore.percent": _ignored("any", "Storm's scheduler."),
    "topology.component.resources.offheap.memory.mb": _ignored("any", "Storm's scheduler."),
    "topology.component.resources.onheap.memory.mb": _ignored("any", "Storm's scheduler."),
    "topology.disable.loadaware.messaging": _ignored("any", "Storm's shuffle grouping."),
    "topology.disruptor.batch.size": _ignored("any", "Storm's queues."),
    "topology.disruptor.batch.timeout.millis": _ignored("any", "Storm's queues."),
    "topology.disruptor.wait.timeout.millis": _ignored("any", "Storm's queues."),
    "topology.environment": _ignored("any", "Storm's JVMs."),
    "topology.error.throttle.interval.secs": _ignored("any", "Storm's reported errors."),
    "topology.max.error.report.per.interval": _ignored("any", "Storm's reported errors."),
    "topology.max.replication.wait.time.sec": _ignored("any", "Storm's code distribution."),
    "topology.min.replication.count": _ignored("any", "Storm's code distribution."),
    "topology.multilang.serializer": _ignored("any", "Storm's multilang."),
    "topology.shellbolt.max.pending": _ignored("any", "Storm's multilang."),
    "topology.state.checkpoint.interval.ms": _ignored("any", "Storm's stateful bolts."),
    "topology.state.synchronization.timeout.secs": _ignored("any", "Storm's state."),
    "topology.testing.always.try.serialize": _ignored("any", "Storm's tests."),
    "topology.trident.batch.emit.interval.millis": _ignored("any", "Storm's Trident."),
    "topology.tuple.serializer": _ignored("any", "Storm's kryo."),
    "topology.worker.logwriter.childopts": _ignored("any", "Storm's JVMs."),
    "topology.worker.max.heap.size.mb": _ignored("any", "Storm's JVMs."),
    "topology.worker.receiver.thread.count": _ignored("any", "Storm's queues."),
    "topology.worker.shared.thread.pool.size": _ignored("any", "Storm's JVMs."),
}


_PEM = f"{ZOOKEEPER_SSL_CA}, {ZOOKEEPER_SSL_CERTIFICATE} and {ZOOKEEPER_SSL_KEY}, which take PEM files"
_REPLACED = {
    **dict.fromkeys(
        (
            f"storm.zookeeper.ssl.{store}.{what}"
            for store in ("keystore", "truststore")
            for what in ("path", "password")
        ),
        _PEM,
    ),
    **dict.fromkeys(
        (
            "storm.zookeeper.auth.user",
            "storm.zookeeper.auth.password",
            "storm.zookeeper.topology.auth.scheme",
            "storm.zookeeper.topology.auth.payload",
        ),
        f"{ZOOKEEPER_AUTH_SCHEME} and {ZOOKEEPER_AUTH_PAYLOAD}",
    ),
}
"""Keys of Storm's that protect something, and what to set instead: ignored they would protect nothing."""

_OURS = ("topology.", "transactional.", "storm.zookeeper.")


def _is_int(value: Any, least: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and least <= value < 1 << 31


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


_CHECKS: dict[str, tuple[str, Any]] = {
    "count": ("a whole number of at least 1, below 2**31", lambda v: _is_int(v, 1)),
    "count or zero": ("a whole number of at least 0, or None", lambda v: v is None or _is_int(v, 0)),
    "count or none": ("a whole number of at least 1, or None", lambda v: v is None or _is_int(v, 1)),
    "group size": ("a whole number from 1 to 1000", lambda v: _is_int(v, 1) and v <= 1000),
    "seconds": ("a number of seconds above 0, up to 1e9", lambda v: _is_number(v) and 0 < v <= 1e9),
    "number": ("a number", _is_number),
    "flag": ("True or False", lambda v: isinstance(v, bool)),
    "name or none": ("a text that is not empty, or None", lambda v: v is None or (isinstance(v, str) and v != "")),
    "text": ("text", lambda v: isinstance(v, str)),
    "path": (
        "an absolute znode path such as '/transactional'",
        lambda v: isinstance(v, str) and is_znode_path(v),
    ),
    "hosts or none": (
        "a list of host names, or None",
        lambda v: v is None or (isinstance(v, (list, tuple)) and v and all(map(is_host, v))),
    ),
    "port or none": ("a port from 1 to 65535, or None", lambda v: v is None or (_is_int(v, 1) and v <= 65535)),
    "registrations": (
        "registrations made by register_serialization",
        lambda v: isinstance(v, (list, tuple)) and all(isinstance(r, Registration) for r in v),
    ),
    "labels": (
        "a list of labels of transactions, as the message that names them has them",
        lambda v: isinstance(v, (list, tuple)) and all(isinstance(label, str) for label in v),
    ),
    "placement": ("'driver' or 'executors'", lambda v: isinstance(v, str) and v in ("driver", "executors")),
    "auth scheme or none": (
        "'digest', 'sasl' or None",
        lambda v: v is None or (isinstance(v, str) and v in ("digest", "sasl")),
    ),
    "secret or none": (
        "a reference to where it is kept, env:NAME or file:PATH, not the secret itself",
        lambda v: v is None or is_reference(v),
    ),
    "file or none": (
        "the path of a file, or None",
        lambda v: v is None or (isinstance(v, str) and v != "" and v.isprintable()),
    ),
    "no ticks": (
        "None, since there are no tick tuples here: do at the end of a batch, in finish_batch, which every task runs "
        "for every batch, with no tuples too, what a tick did; compare time.monotonic() there where that is too often",
        lambda v: v is None,
    ),
    "hooks": (
        "a list of classes of task hooks, or of their names 'package.module.Class', or None",
        lambda v: v is None or (isinstance(v, (list, tuple)) and all(callable(h) or is_dotted(h) for h in v)),
    ),
    "any": ("any value", lambda v: True),
}


def check_config(config: Mapping[str, Any], where: str) -> None:
    """Check every key under `topology.`, `transactional.` and `storm.zookeeper.` that `config` sets.

    Raises:
        UnknownConfigKey: nobody reads this key; the message names the nearest one that is known.
        InvalidConfig: the value does not fit the key.
    """
    if not isinstance(config, Mapping):
        raise InvalidConfig(f"{where} is {config!r}, expected a dict such as Config")
    for key, value in config.items():
        if not isinstance(key, str):
            raise InvalidConfig(f"{where}: key {key!r} is {type(key).__name__}, expected text")
        known = KNOWN_KEYS.get(key)
        if known is None:
            if key in _REPLACED:
                raise UnknownConfigKey(f"{where}: {key} has no effect here; set {_REPLACED[key]}")
            if key.startswith(_OURS):
                raise UnknownConfigKey(
                    f"{where}: unknown key {key[:NAME_CHARS_MAX]!r}{did_you_mean(key[:NAME_CHARS_MAX], KNOWN_KEYS)}; "
                    "keys of your own may have any name that does not begin with 'topology.', 'transactional.' or "
                    "'storm.zookeeper.'"
                )
            continue
        expected, fits = _CHECKS[known.kind]
        if not fits(value):
            shown = f"a {type(value).__name__} that is not shown" if known.kind == "secret or none" else repr(value)
            raise InvalidConfig(f"{where}: {key} is {shown}, expected {expected}")


def setting(config: Mapping[str, Any], key: str) -> Any:
    """Return what `config` sets for a known key, else its default."""
    value = config.get(key)
    return KNOWN_KEYS[key].default if value is None else value
