"""Config: a dict with Storm's keys and setters."""

from __future__ import annotations

from typing import Any

from stormline.topology.config import (
    AUTO_TASK_HOOKS,
    COMMIT_GROUP_MAX,
    COMMIT_PLACEMENT,
    DEBUG,
    ENABLE_MESSAGE_TIMEOUTS,
    KNOWN_KEYS,
    KRYO_REGISTER,
    MAX_BATCH_ATTEMPTS,
    MAX_SPOUT_PENDING,
    MAX_TASK_PARALLELISM,
    MESSAGE_TIMEOUT_SECS,
    NAME,
    STORM_ZOOKEEPER_PORT,
    STORM_ZOOKEEPER_SERVERS,
    TICK_TUPLE_FREQ_SECS,
    TRANSACTIONAL_ID,
    WORKERS,
    ZOOKEEPER_AUTH_PAYLOAD,
    ZOOKEEPER_AUTH_SCHEME,
    ZOOKEEPER_PORT,
    ZOOKEEPER_ROOT,
    ZOOKEEPER_SERVERS,
)
from stormline.topology.registration import Registration, Serializer
from stormline.topology.secrets import HIDDEN, is_reference, names_a_secret
from stormline.topology.storm_names import storm_names


def _is_hidden(key: Any, value: Any) -> bool:
    known = KNOWN_KEYS.get(key)
    secret = known.kind == "secret or none" if known is not None else names_a_secret(key)
    return secret and value is not None and not is_reference(value)


@storm_names(put="config[key] = value")
class Config(dict[str, Any]):
    """The configuration of a topology: a dict with Storm's keys and setters.

    All keys, their defaults and units are in docs/configuration.md. `spark.*` keys are passed to Spark; other keys
    outside `topology.`, `transactional.` and `storm.` are the user's own and reach `conf` in `prepare`. Its repr shows
    no secret. Values are checked when the topology is compiled. Storm 1.2.4: Config.
    """

    TOPOLOGY_MAX_SPOUT_PENDING = MAX_SPOUT_PENDING
    TOPOLOGY_MESSAGE_TIMEOUT_SECS = MESSAGE_TIMEOUT_SECS
    TOPOLOGY_ENABLE_MESSAGE_TIMEOUTS = ENABLE_MESSAGE_TIMEOUTS
    TOPOLOGY_MAX_BATCH_ATTEMPTS = MAX_BATCH_ATTEMPTS
    TOPOLOGY_MAX_TASK_PARALLELISM = MAX_TASK_PARALLELISM
    TOPOLOGY_DEBUG = DEBUG
    TOPOLOGY_WORKERS = WORKERS
    TOPOLOGY_NAME = NAME
    TOPOLOGY_TRANSACTIONAL_ID = TRANSACTIONAL_ID
    TOPOLOGY_COMMIT_PLACEMENT = COMMIT_PLACEMENT
    TOPOLOGY_COMMIT_GROUP_MAX = COMMIT_GROUP_MAX
    TOPOLOGY_KRYO_REGISTER = KRYO_REGISTER
    TOPOLOGY_AUTO_TASK_HOOKS = AUTO_TASK_HOOKS
    TOPOLOGY_TICK_TUPLE_FREQ_SECS = TICK_TUPLE_FREQ_SECS
    TRANSACTIONAL_ZOOKEEPER_ROOT = ZOOKEEPER_ROOT
    TRANSACTIONAL_ZOOKEEPER_SERVERS = ZOOKEEPER_SERVERS
    TRANSACTIONAL_ZOOKEEPER_PORT = ZOOKEEPER_PORT
    STORM_ZOOKEEPER_SERVERS = STORM_ZOOKEEPER_SERVERS
    STORM_ZOOKEEPER_PORT = STORM_ZOOKEEPER_PORT
    STORM_ZOOKEEPER_AUTH_SCHEME = ZOOKEEPER_AUTH_SCHEME
    STORM_ZOOKEEPER_AUTH_PAYLOAD = ZOOKEEPER_AUTH_PAYLOAD

    def __repr__(self) -> str:
        hidden = {key for key, value in self.items() if _is_hidden(key, value)}
        return f"{{{', '.join(f'{k!r}: {HIDDEN if k in hidden else repr(v)}' for k, v in self.items())}}}"

    def set_max_spout_pending(self, transactions: int) -> None:
        """Let this many transactions be active at once: `topology.max.spout.pending`.

        Args:
            transactions (int): number of transactions, at least 1.
        """
        self[MAX_SPOUT_PENDING] = transactions

    def set_message_timeout_secs(self, secs: float) -> None:
        """Fail an attempt that takes longer than this for one phase: `topology.message.timeout.secs`.

        Args:
            secs (float): seconds, more than 0.
        """
        self[MESSAGE_TIMEOUT_SECS] = secs

    def set_debug(self, on: bool) -> None:
        """Log every tuple emitted, or none: `topology.debug`.

        Args:
            on (bool): whether to log.
        """
        self[DEBUG] = on

    def set_num_workers(self, workers: int) -> None:
        """Pack each stage into this many Spark tasks: `topology.workers`.

        Args:
            workers (int): number of Spark tasks, at least 1.
        """
        self[WORKERS] = workers

    def set_num_ackers(self, executors: int) -> None:
        """Accept Storm's setting; Stormline counts tuples itself and has no ackers.

        Args:
            executors (int): number of ackers in Storm; without effect here.
        """
        self["topology.acker.executors"] = executors

    def set_max_task_parallelism(self, tasks: int) -> None:
        """Let no component have more tasks than this: `topology.max.task.parallelism`.

        Args:
            tasks (int): number of tasks, at least 1.
        """
        self[MAX_TASK_PARALLELISM] = tasks

    def set_max_batch_attempts(self, attempts: int) -> None:
        """Stop the topology when one batch has failed this many times: `topology.max.batch.attempts`.

        Storm 1.2.4 has no such limit: there a batch is replayed for ever, as here where it is not set.

        Args:
            attempts (int): number of failed attempts, at least 1.
        """
        self[MAX_BATCH_ATTEMPTS] = attempts

    def set_commit_placement(self, placement: str) -> None:
        """Say where committers finish: `topology.commit.placement`; a committer's own key wins.

        Args:
            placement (str): "driver" or "executors".
        """
        self[COMMIT_PLACEMENT] = placement

    def set_commit_group_max(self, transactions: int) -> None:
        """Say how many transactions may become durable in one step: `topology.commit.group.max`.

        Args:
            transactions (int): a number of txids, at most 1000; 1: each by itself.
        """
        self[COMMIT_GROUP_MAX] = transactions

    def register_serialization(self, cls: type, serializer: Serializer | type[Serializer] | None = None) -> None:
        """Let tuples and metadata hold objects of a class: `topology.kryo.register`.

        A NamedTuple, a dataclass or an Enum needs no serializer. Stored data has the name of the class: one that is
        renamed is not found again.

        Args:
            cls (type): the class; no built-in one.
            serializer (Serializer | type[Serializer] | None): an object or class with `to_data(obj)` and
                `from_data(data)`; None: the fields are written by their names.

        Raises:
            InvalidRegistration: the class cannot be registered so; the message says why.
        """
        self[KRYO_REGISTER] = [*self.get(KRYO_REGISTER, ()), Registration.of(cls, serializer)]
