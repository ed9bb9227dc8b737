"""ComponentDeclarer and SpoutDeclarer: by which a component is configured."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from stormline.topology.config import DEBUG, MAX_SPOUT_PENDING, MAX_TASK_PARALLELISM, TASKS, check_config
from stormline.topology.contracts import AnyComponent, IArrowBatchBolt
from stormline.topology.errors import InvalidParallelism
from stormline.topology.grouping import (
    GlobalStreamId,
    Grouping,
)
from stormline.topology.storm_names import storm_names
from stormline.topology.streams import OutputFieldsDeclarer
from stormline.topology.topology import Component, ComponentKind

D = TypeVar("D", bound="ComponentDeclarer")


def check_tasks(who: str, what: str, value: Any) -> int:
    """Return `value`, a whole number of at least 1; raise `InvalidParallelism` for anything else."""
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise InvalidParallelism(f"{who}: {what} is {value!r}, expected a whole number of at least 1")
    return value


@storm_names()
class ComponentDeclarer:
    """What can be said of spouts and bolts alike; every call returns the declarer: calls can follow one another.

    Args:
        component (str): id of the component.
        kind (ComponentKind): what it is.
        obj (AnyComponent): the spout or bolt.
        parallelism (int | None): number of tasks, at least 1; None: 1.

    Raises:
        InvalidParallelism: `parallelism` is no whole number of at least 1.
    """

    def __init__(self, component: str, kind: ComponentKind, obj: AnyComponent, parallelism: int | None) -> None:
        self._id = component
        self._kind = kind
        self._obj = obj
        self._who = f"{kind.value} {component!r}"
        self._parallelism = 1 if parallelism is None else check_tasks(self._who, "parallelism", parallelism)
        self._config: dict[str, Any] = {}
        self._inputs: dict[GlobalStreamId, Grouping] = {}
        self._committer = False

    def set_num_tasks(self: D, tasks: int) -> D:
        """Give the component this many tasks, whatever its parallelism.

        Args:
            tasks (int): number of tasks, at least 1.

        Returns:
            the declarer.

        Raises:
            InvalidParallelism: `tasks` is no whole number of at least 1.
        """
        return self.add_configuration(TASKS, check_tasks(self._who, "number of tasks", tasks))

    def set_max_task_parallelism(self: D, tasks: int) -> D:
        """Let the component have no more tasks than this.

        Args:
            tasks (int): greatest number of tasks, at least 1.

        Returns:
            the declarer.

        Raises:
            InvalidParallelism: `tasks` is no whole number of at least 1.
        """
        return self.add_configuration(MAX_TASK_PARALLELISM, check_tasks(self._who, "max task parallelism", tasks))

    def set_debug(self: D, on: bool) -> D:
        """Log every tuple that the component emits, or none.

        Args:
            on (bool): whether to log.

        Returns:
            the declarer.

        Raises:
            InvalidConfig: `on` is no bool.
        """
        return self.add_configuration(DEBUG, on)

    def add_configuration(self: D, key: str, value: Any) -> D:
        """Set one key for this component; it wins over the component's own and the topology's configuration.

        Args:
            key (str): one of `Config`'s keys, or one of your own, which reaches `conf` in `prepare`.
            value (Any): what the key is set to.

        Returns:
            the declarer.

        Raises:
            UnknownConfigKey: the key looks like one of ours, and is none.
            InvalidConfig: the value does not fit the key.
        """
        return self.add_configurations({key: value})

    def add_configurations(self: D, config: Mapping[str, Any]) -> D:
        """Set several keys for this component; as `add_configuration`.

        Args:
            config (Mapping[str, Any]): the keys and their values.

        Returns:
            the declarer.

        Raises:
            UnknownConfigKey: a key looks like one of ours, and is none.
            InvalidConfig: a value does not fit its key, or `config` is no mapping.
        """
        check_config(config, f"configuration of {self._who}")
        self._config.update(config)
        return self

    def _build(self) -> Component:
        own = self._obj.get_component_configuration()
        own = {} if own is None else own
        check_config(own, f"get_component_configuration of {self._who}")
        config = {**own, **self._config}
        declarer = OutputFieldsDeclarer(self._id)
        self._obj.declare_output_fields(declarer)
        tasks = config.get(TASKS) or self._parallelism
        return Component(
            id=self._id,
            kind=self._kind,
            obj=self._obj,
            num_tasks=min(tasks, config.get(MAX_TASK_PARALLELISM) or tasks),
            committer=self._committer,
            streams=dict(declarer.streams),
            inputs=dict(self._inputs),
            config=config,
            columnar=isinstance(self._obj, IArrowBatchBolt),
        )


@storm_names()
class SpoutDeclarer(ComponentDeclarer):
    """Settings of the spout; they reach its coordinator and its emitters. `get_spout_declarer` returns it.

    In Storm 1.2.4 they reach the coordinator only.
    """

    def set_max_spout_pending(self, transactions: int) -> SpoutDeclarer:
        """Let this many transactions be active at once; wins over the topology's configuration, as in Storm 1.2.4.

        Args:
            transactions (int): number of transactions, at least 1.

        Returns:
            the declarer.

        Raises:
            InvalidConfig: `transactions` is no whole number of at least 1.
        """
        return self.add_configuration(MAX_SPOUT_PENDING, transactions)
