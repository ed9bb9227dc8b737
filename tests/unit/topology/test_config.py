"""Config: Storm's keys and setters, and the check of every key that is ours."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from stormline import Config
from stormline.topology import config as keys
from stormline.topology.config import KNOWN_KEYS, check_config, setting
from stormline.topology.errors import InvalidConfig, InvalidRegistration, StormlineError, UnknownConfigKey


@dataclass
class Point:
    x: int


@dataclass
class Other:
    y: int


class AsText:
    def to_data(self, obj: Any) -> Any:
        return str(obj.x)

    def from_data(self, data: Any) -> Any:
        return Point(int(data))


# Of each kind: what fits, what does not, and what the message says was expected.
KINDS: dict[str, tuple[list[Any], list[Any], str]] = {
    "count": ([1, 10**9], [0, -1, 1.0, "1", True, None, 2**31], "a whole number of at least 1, below 2**31"),
    "count or zero": ([None, 0, 3], [-1, 0.5, "0", False], "a whole number of at least 0, or None"),
    "count or none": ([None, 1], [0, 1.5, "1", True], "a whole number of at least 1, or None"),
    "seconds": (
        [1, 0.5, 10**9],
        [0, -1, "30", True, None, float("nan"), float("inf"), 1e300],
        "a number of seconds above 0, up to 1e9",
    ),
    "number": ([0, 0.05, -1], ["0.05", True, None], "a number"),
    "flag": ([True, False], [0, 1, "true", None], "True or False"),
    "text": (["", "x"], [None, 1, b"x"], "text"),
    "name or none": ([None, "x", "a b"], ["", 1, b"x"], "a text that is not empty, or None"),
    "path": (
        ["/transactional", "/a/b-c"],
        ["", "/", "a", "a/b", "/a/", "//a", "/a//b", "/a/../b", "/.", "/a/.", None, 3, "/zookeeper", "/zookeeper/a"]
        + [f"/{part}" for part in ("a\n", "ä", "\u0430", "a b", ".a", "x" * 129)],
        "an absolute znode path such as '/transactional'",
    ),
    "hosts or none": (
        [None, ["a"], ("a", "10.0.0.1")],
        ["localhost", [], [""], [1], {"a": 1}, ["a/b"], ["a,b"], ["a b"], ["a\n"], ["\u0430"], ["x" * 256]],
        "a list of host names, or None",
    ),
    "port or none": ([None, 1, 65535], [0, 65536, "2181", 2181.0, True], "a port from 1 to 65535, or None"),
    "registrations": ([[], ()], [[Point], "Point", None], "registrations made by register_serialization"),
    "labels": (
        [[], ["orders_1-sink_2-7-1-1-3-0123456789abcdef"], ("a",)],
        ["orders", [1], None, {"a": 1}],
        "a list of labels of transactions, as the message that names them has them",
    ),
    "group size": ([1, 64, 1000], [0, 1001, None, "8", True, 1.0], "a whole number from 1 to 1000"),
    "placement": (["driver", "executors"], ["drivers", "", None, 1, ["driver"], True], "'driver' or 'executors'"),
    "auth scheme or none": ([None, "digest", "sasl"], ["", "ip", "Digest", 1, ["digest"]], "'digest', 'sasl' or None"),
    "secret or none": (
        [None, "env:NAME", "file:/a/b c"],
        ["user:password", "env:", "env:1x", "file:", "ENV:NAME", " env:NAME", "env:A\n", b"env:NAME", 3],
        "a reference to where it is kept, env:NAME or file:PATH, not the secret itself",
    ),
    "file or none": ([None, "ca.pem", "/a/b"], ["", 1, b"x", "a\0b", "a\n"], "the path of a file, or None"),
    "no ticks": (
        [None],
        [5, 0, 1.0, "5", False],
        "None, since there are no tick tuples here: do at the end of a batch, in finish_batch, which every task runs "
        "for every batch, with no tuples too, what a tick did; compare time.monotonic() there where that is too often",
    ),
    "hooks": (
        [None, [], ["a.b.Hook"], (dict,)],
        ["a.b.Hook", [3], ["Hook"], ["a..b"], {"a.b": 1}, 1],
        "a list of classes of task hooks, or of their names 'package.module.Class', or None",
    ),
    "any": ([None, 1, object()], [], "any value"),
}


@pytest.mark.parametrize("key", KNOWN_KEYS)
def test_every_key_takes_what_fits_and_says_what_it_expected(key: str) -> None:
    known = KNOWN_KEYS[key]
    fits, wrong, expected = KINDS[known.kind]
    for value in fits:
        check_config({key: value}, "here")
    for value in wrong:
        with pytest.raises(InvalidConfig) as caught:
            check_config({key: value}, "here")
        secret = known.kind == "secret or none"
        shown = f"a {type(value).__name__} that is not shown" if secret else repr(value)
        assert str(caught.value) == f"here: {key} is {shown}, expected {expected}"


@pytest.mark.parametrize("key", KNOWN_KEYS)
def test_every_key_has_a_meaning_and_a_default_that_fits_it(key: str) -> None:
    known = KNOWN_KEYS[key]
    assert known.meaning.endswith(".")
    if known.default is not None:
        check_config({key: known.default}, "default")
    assert known.used or "without effect" in known.meaning


def test_every_kind_of_check_is_in_use() -> None:
    assert {known.kind for known in KNOWN_KEYS.values()} == set(KINDS) == set(keys._CHECKS)


@pytest.mark.parametrize(
    ("key", "near"),
    [
        ("topology.max.spout.pendng", "; did you mean 'topology.max.spout.pending'?"),
        ("topology.message.timeout.sec", "; did you mean 'topology.message.timeout.secs'?"),
        ("transactional.zookeeper.server", "; did you mean 'transactional.zookeeper.servers'?"),
        ("storm.zookeeper.auth.schem", "; did you mean 'storm.zookeeper.auth.scheme'?"),
        ("topology.", ""),
        ("transactional.x", ""),
    ],
)
def test_an_unknown_key_of_ours_is_an_error_with_the_nearest_one(key: str, near: str) -> None:
    with pytest.raises(UnknownConfigKey) as caught:
        check_config({key: 1}, "here")
    assert str(caught.value).startswith(f"here: unknown key {key!r}{near}")
    assert str(caught.value).endswith(
        "; keys of your own may have any name that does not begin with 'topology.', 'transactional.' or "
        "'storm.zookeeper.'"
    )
    assert isinstance(caught.value, (StormlineError, KeyError, ValueError))


@pytest.mark.parametrize(
    ("key", "instead"),
    [
        ("storm.zookeeper.topology.auth.payload", "storm.zookeeper.auth.scheme and storm.zookeeper.auth.payload"),
        ("storm.zookeeper.auth.password", "storm.zookeeper.auth.scheme and storm.zookeeper.auth.payload"),
        ("storm.zookeeper.ssl.keystore.path", "transactional.zookeeper.ssl.ca, .*, which take PEM files"),
    ],
)
def test_a_key_of_storms_that_would_protect_nothing_is_refused(key: str, instead: str) -> None:
    with pytest.raises(UnknownConfigKey, match=rf"^here: {key} has no effect here; set {instead}$"):
        check_config({key: "x"}, "here")


def test_the_repr_shows_no_secret() -> None:
    config = Config({"storm.zookeeper.auth.payload": "u:hunter2", "my.password": "hunter2", "a": 1})
    config["topology.kryo.register"] = []
    assert repr(config) == (
        "{'storm.zookeeper.auth.payload': *****, 'my.password': *****, 'a': 1, 'topology.kryo.register': []}"
    )
    assert repr(Config({"my.password": "env:X", "b": 2})) == "{'my.password': 'env:X', 'b': 2}"


@pytest.mark.parametrize(
    "key", ["mine", "spark.executor.memory", "topologyx", "storm.local.dir", "", "my.topology.debug"]
)
def test_other_keys_are_the_users_own(key: str) -> None:
    check_config({key: object()}, "here")


@pytest.mark.parametrize("key", [3, None, b"topology.debug", ("a",)])
def test_a_key_that_is_no_text_is_an_error(key: Any) -> None:
    with pytest.raises(InvalidConfig) as caught:
        check_config({key: 1}, "here")
    assert str(caught.value) == f"here: key {key!r} is {type(key).__name__}, expected text"


@pytest.mark.parametrize("wrong", [None, "x", [("a", 1)], 3])
def test_what_is_no_dict_is_an_error(wrong: Any) -> None:
    with pytest.raises(InvalidConfig) as caught:
        check_config(wrong, "here")
    assert str(caught.value) == f"here is {wrong!r}, expected a dict such as Config"


SETTERS = [
    ("set_max_spout_pending", 4, "topology.max.spout.pending"),
    ("set_message_timeout_secs", 2.5, "topology.message.timeout.secs"),
    ("set_commit_placement", "executors", "topology.commit.placement"),
    ("set_commit_group_max", 8, "topology.commit.group.max"),
    ("set_debug", True, "topology.debug"),
    ("set_num_workers", 3, "topology.workers"),
    ("set_num_ackers", 0, "topology.acker.executors"),
    ("set_max_task_parallelism", 2, "topology.max.task.parallelism"),
    ("set_max_batch_attempts", 5, "topology.max.batch.attempts"),
]


@pytest.mark.parametrize(("setter", "value", "key"), SETTERS)
def test_a_setter_sets_storms_key(setter: str, value: Any, key: str) -> None:
    config = Config()
    getattr(config, setter)(value)
    assert config == {key: value}
    check_config(config, "here")


def test_every_setter_is_tested_here() -> None:
    assert {name for name in vars(Config) if name.startswith("set_")} == {setter for setter, _, _ in SETTERS}


def test_config_is_a_dict_and_names_storms_keys() -> None:
    config = Config({Config.TOPOLOGY_DEBUG: True}, mine=1)
    assert isinstance(config, dict)
    assert config == {"topology.debug": True, "mine": 1}
    constants = [value for name, value in vars(Config).items() if name.isupper()]
    assert constants
    assert set(constants) <= set(KNOWN_KEYS)


def test_setting_gives_the_default_where_nothing_or_none_is_set() -> None:
    assert setting({}, keys.MAX_SPOUT_PENDING) == 16
    assert setting({keys.MAX_SPOUT_PENDING: None}, keys.MAX_SPOUT_PENDING) == 16
    assert setting({keys.MAX_SPOUT_PENDING: 1}, keys.MAX_SPOUT_PENDING) == 1
    assert setting({keys.ENABLE_MESSAGE_TIMEOUTS: False}, keys.ENABLE_MESSAGE_TIMEOUTS) is False


def test_registrations_add_up() -> None:
    config = Config()
    config.register_serialization(Point)
    config.register_serialization(Other, AsText())
    registered = config[Config.TOPOLOGY_KRYO_REGISTER]
    assert [registration.cls for registration in registered] == [Point, Other]
    assert [registration.name for registration in registered] == [f"{__name__}.Point", f"{__name__}.Other"]
    check_config(config, "here")


def test_a_copy_of_a_config_does_not_share_later_registrations() -> None:
    config = Config()
    config.register_serialization(Point)
    copied = Config(config)
    copied.register_serialization(Other)
    assert len(config[Config.TOPOLOGY_KRYO_REGISTER]) == 1


def test_a_class_that_cannot_be_registered_is_refused_at_once() -> None:
    config = Config()
    with pytest.raises(
        InvalidRegistration, match="class object is no dataclass, NamedTuple or Enum; pass a serializer"
    ):
        config.register_serialization(object)
    assert config == {}
