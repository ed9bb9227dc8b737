"""The cluster: Spark, ZooKeeper, PostgreSQL, Redis and Kafka on loopback, a proxy before each but the first."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import psycopg

from tests.chaos.design import BY_TWO_PHASES, INTO_KAFKA, Design
from tests.chaos.kafka import ChaosKafka
from tests.chaos.kafka_results import KafkaResults
from tests.chaos.prepared import SCHEMA, SERVER, PreparedResults
from tests.chaos.processes import MARK, ROOT
from tests.chaos.results import Results, TableResults
from tests.chaos.source import Source, SourceFile
from tests.chaos.spark import ChaosStandalone
from tests.chaos.stores import Places
from tests.chaos.topology import SOURCE
from tests.chaos.zookeeper import ChaosZooKeeper
from tests.services.postgresql import PostgreSQL
from tests.services.proxy import Protocol, Proxy, ZooKeeperProtocol
from tests.services.redis import Redis
from tests.services.redis import binary as redis_binary

SESSION_TIMEOUT_MS = 4000
MESSAGE_TIMEOUT_SECS = 8


class Cluster:
    """All services of one run; they start and end with it."""

    def __init__(self, folder: Path, mark: str) -> None:
        self.folder = folder
        path = os.pathsep.join(entry or os.getcwd() for entry in [str(ROOT), *sys.path])
        self.env = {MARK: mark, "PYTHONPATH": path, "PYTHONUNBUFFERED": "1"}
        self.zookeeper = ChaosZooKeeper(folder / "zookeeper", folder / "zookeeper.log", self.env)
        self.postgresql = PostgreSQL(folder / "postgresql.log", self.env, **SERVER)
        self.has_redis = redis_binary() is not None
        self.redis = Redis(folder / "redis.log", self.env)
        self.kafka = ChaosKafka(self.env)
        self.spark = ChaosStandalone(folder / "spark", self.env)
        self.source = SourceFile(folder / SOURCE)
        self.zookeeper_proxy = Proxy(self.zookeeper.port, ZooKeeperProtocol())
        self.postgresql_proxy = Proxy(self.postgresql.port, Protocol())
        self.redis_proxy = Proxy(self.redis.port, Protocol(b"EXEC\r\n"))

    def start(self, with_kafka: bool) -> None:
        """Start all services, Kafka where it is wanted."""
        self.zookeeper.start()
        self.postgresql.create()
        with psycopg.connect(self.postgresql.dsn()) as db:
            db.execute(SCHEMA)
        if self.has_redis:
            self.redis.create()
        if with_kafka:
            self.kafka.create()
        self.spark.start()
        settings = {
            "folder": str(self.folder),
            "master": self.spark.master_url,
            "zookeeper": f"127.0.0.1:{self.zookeeper_proxy.port}",
            "dsn": self.postgresql.dsn(self.postgresql_proxy.port),
            "stores": self.stores(self.postgresql_proxy.port, self.redis_proxy.port),
            "kafka": self.kafka.proxied if with_kafka else "",
            "session_timeout_ms": SESSION_TIMEOUT_MS,
            "message_timeout_secs": MESSAGE_TIMEOUT_SECS,
        }
        (self.folder / "settings.json").write_text(json.dumps(settings))

    def stores(self, postgresql_port: int | None = None, redis_port: int | None = None) -> Places:
        """Return where the stores are: the servers, or proxies before them."""
        places = {"postgresql": self.postgresql.dsn(postgresql_port)}
        return {**places, "redis": self.redis.url(0, redis_port)} if self.has_redis else places

    def make_fences(self, design: Design) -> None:
        """Begin a round: an empty source, and a fence row for each committing task."""
        self.source.change(lambda _: {"rows": 0, "take": Source().take, "gone": [], "poison": [], "failing": []})
        with psycopg.connect(self.postgresql.dsn()) as db:
            for task in range(design.committers):
                db.execute("INSERT INTO fence VALUES (%s, %s, 0, 0, 0)", (design.topology, task))

    def results_of(self, design: Design) -> Results:
        """Return what looks at where a topology writes."""
        if design.sink == INTO_KAFKA:
            return KafkaResults(self.kafka, design)
        if design.sink == BY_TWO_PHASES:
            return PreparedResults(self.postgresql.dsn(), design)
        return TableResults(self.postgresql.dsn(), design)

    def own_pids(self) -> set[int]:
        """Return the processes that belong here as long as the cluster runs."""
        backends = {process.pid for process in self.postgresql.backends()}
        servers = {self.zookeeper.process.pid, self.postgresql.process.pid}
        if self.has_redis:
            servers.add(self.redis.process.pid)
        if self.kafka.created:
            servers.add(self.kafka.pid)
        return servers | backends | {process.pid for process in self.spark.processes()}

    def stop(self) -> None:
        """End all services."""
        self.zookeeper_proxy.close()
        self.postgresql_proxy.close()
        self.redis_proxy.close()
        self.spark.stop()
        self.zookeeper.remove()
        self.kafka.stop()
        self.postgresql.stop()
        self.redis.stop()
