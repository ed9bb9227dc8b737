"""Names of libraries and of their functions, by what they do. What is not named here does nothing that is known."""

from __future__ import annotations

import re


def _named(text: str) -> frozenset[str]:
    return frozenset(text.split())


HTTP = _named("requests httpx aiohttp requests_futures niquests")
DATABASES = _named("""
    sqlite3 apsw psycopg psycopg2 pg8000 asyncpg pymysql MySQLdb mysql mariadb pyodbc cx_Oracle oracledb duckdb pymssql
    clickhouse_driver clickhouse_connect sqlalchemy cassandra phoenixdb snowflake trino peewee dataset records
""")
STORES = _named("""
    redis rediscluster fakeredis valkey pymemcache memcache pylibmc pymongo happybase elasticsearch opensearchpy boto3
    botocore kafka confluent_kafka aiokafka pika kombu couchdb influxdb influxdb_client kazoo stomp zmq aerospike neo4j
    google azure pulsar nats shelve dbm diskcache plyvel rocksdb lmdb
""")
FILE_CHANGES = _named("""
    os.remove os.unlink os.rename os.replace os.truncate shutil.move shutil.copy shutil.copy2 shutil.copyfile
    shutil.rmtree pathlib.Path().write_text pathlib.Path().write_bytes pathlib.Path().unlink pathlib.Path().rename
    pathlib.Path().replace
""")
SENDS = _named("os.write smtplib.SMTP().send_message smtplib.SMTP().sendmail smtplib.SMTP_SSL().send_message")
OPENERS = _named("open io.open codecs.open gzip.open bz2.open lzma.open pathlib.Path().open")
CONNECTION_CLASS = re.compile(
    r"(Connection|Client|Session|Producer|Consumer|Pool|Cursor|Channel|Engine|Redis|Socket|Cluster|Database|"
    r"Elasticsearch)$"
)
STORING = re.compile(
    r"(put|set|add|insert|update|delete|replace|incr|decr|append|push|publish|send|produce|index|bulk|create|upsert"
    r"|save|write|store|remove|[hsz](set|add|incr|rem|del)|[lr]push|xadd|mset|p?setex|setnx|getset|basic_publish)"
    r"(_?(by|one|many|all|items?|rows?|multi|object|async|message|nx|ex|float|documents?))*$"
)
"""Methods of a client of one of `STORES` that change something there."""
ADDING = re.compile(r"incr|decr|append|push|publish|send|produce|xadd|insert")
"""Those of them that change more each time."""

CONNECTING = re.compile(
    r"(^|\.)(get_)?(connect(ion)?|create_engine|\w*(Connection|Client|Session|Producer|Publisher))\(\)"
)
"""What makes a connection, in whatever library."""
_STORING = _named("""
    insert insert_one insert_many put put_item upsert incr incrby hincrby hset lpush rpush sadd zadd publish produce
    send
""")
STORING_BY_NAME = {
    **dict.fromkeys(("db", "database", "conn", "connection", "client", "producer", "redis", "mongo"), _STORING),
    **dict.fromkeys(("table", "htable"), _named("put")),
    **dict.fromkeys(("collection", "coll"), _named("insert_one insert_many")),
}
"""What a connection is called, of whatever library, and which of its methods change something there."""

CLOCK = _named("""
    time.time time.time_ns time.monotonic time.monotonic_ns time.perf_counter time.perf_counter_ns
    datetime.datetime.now datetime.datetime.utcnow datetime.datetime.today datetime.date.today
""")
CLOCK_WITHOUT_ARGUMENTS = _named("time.localtime time.gmtime time.ctime time.asctime")
CHANCE = _named("os.urandom uuid.uuid1 uuid.uuid4")
CHANCE_MODULES = ("random.", "secrets.", "numpy.random.")
NO_CHANCE = _named("""
    Random SystemRandom seed getstate setstate default_rng RandomState Generator SeedSequence compare_digest
""")
"""Names of these modules that draw nothing."""

SLEEPS = _named("time.sleep asyncio.sleep threading.Event().wait threading.Condition().wait")
SLEEPS_WITH_TIMEOUT = _named("queue.Queue().get queue.SimpleQueue().get")
