"""The tweets of a book's chapter on transactional topologies: who writes about what, counted in Redis.

    spout → users ──────┐
          → hashtags ───┤→ join → committer

The spout reads a queue in Redis; the committer, with a map for each kind of thing it counts, writes all in one `multi`
keyed by the transaction id. Emitter, coordinator and committer each open a connection of their own.
"""

import dataclasses

from stormline import (
    BaseBasicBolt,
    BaseBatchBolt,
    BaseTransactionalBolt,
    Config,
    Fields,
    ICommitter,
    ITransactionalSpout,
    TransactionalTopologyBuilder,
    Values,
)
from tests.ports.services.redis import Redis

HOST = "localhost"
MAX_TRANSACTION_SIZE = 10
LAST_COMMITTED = "LAST_COMMITTED"


@dataclasses.dataclass
class TransactionMetadata:
    start: int
    quantity: int


class ReaderQueue:
    """The messages "0", "1", …, and beside them where the next one is written and where the next batch is read."""

    def __init__(self):
        self.redis = Redis(HOST)

    def available(self, current):
        return self.redis.get("NEXT_WRITE", 0) - current

    def next_read(self):
        return self.redis.get("NEXT_READ", 0)

    def set_next_read(self, position):
        self.redis.set("NEXT_READ", position)

    def messages(self, start, quantity):
        return self.redis.mget([str(position) for position in range(start, start + quantity)])

    def close(self):
        self.redis.close()


class TweetsTransactionalSpout(ITransactionalSpout):
    class Coordinator:
        def __init__(self):
            self.queue = ReaderQueue()
            self.next_read = self.queue.next_read()

        def is_ready(self):
            return self.queue.available(self.next_read) > 0

        def initialize_transaction(self, txid, prev_metadata):
            quantity = min(self.queue.available(self.next_read), MAX_TRANSACTION_SIZE)
            metadata = TransactionMetadata(self.next_read, quantity)
            self.next_read += quantity
            return metadata

        def close(self):
            self.queue.close()

    class Emitter:
        def __init__(self):
            self.queue = ReaderQueue()

        def emit_batch(self, tx, metadata, collector):
            self.queue.set_next_read(metadata.start + metadata.quantity)
            messages = self.queue.messages(metadata.start, metadata.quantity)
            for tweet_id, message in enumerate(messages, metadata.start):
                collector.emit(Values(tx, str(tweet_id), message))

        def cleanup_before(self, txid):
            pass

        def close(self):
            self.queue.close()

    def get_coordinator(self, conf, context):
        return self.Coordinator()

    def get_emitter(self, conf, context):
        return self.Emitter()

    def declare_output_fields(self, declarer):
        declarer.declare(Fields("txid", "tweet_id", "tweet"))


class UserSplitterBolt(BaseBasicBolt):
    def execute(self, tup, collector):
        tx, tweet_id = tup.get_value(0), tup.get_string_by_field("tweet_id")
        for user in {word[1:] for word in tup.get_string_by_field("tweet").split() if word.startswith("@")}:
            collector.emit("users", Values(tx, tweet_id, user))

    def declare_output_fields(self, declarer):
        declarer.declare_stream("users", Fields("txid", "tweet_id", "user"))


class HashtagSplitterBolt(BaseBasicBolt):
    def execute(self, tup, collector):
        tx, tweet_id = tup.get_value(0), tup.get_string_by_field("tweet_id")
        for hashtag in {word[1:] for word in tup.get_string_by_field("tweet").split() if word.startswith("#")}:
            collector.emit("hashtags", Values(tx, tweet_id, hashtag))

    def declare_output_fields(self, declarer):
        declarer.declare_stream("hashtags", Fields("txid", "tweet_id", "hashtag"))


class UserHashtagJoinBolt(BaseBatchBolt):
    def prepare(self, conf, context, collector, id):
        self.collector = collector
        self.id = id
        self.user_tweets = {}
        self.tweet_hashtags = {}

    def execute(self, tup):
        tweet_id = tup.get_string_by_field("tweet_id")
        source = tup.get_source_stream_id()
        if source == "hashtags":
            self.tweet_hashtags.setdefault(tweet_id, set()).add(tup.get_string_by_field("hashtag"))
        elif source == "users":
            self.user_tweets.setdefault(tup.get_string_by_field("user"), set()).add(tweet_id)

    def finish_batch(self):
        for user, tweets in self.user_tweets.items():
            hashtags = {}
            for tweet in tweets:
                for hashtag in self.tweet_hashtags.get(tweet, ()):
                    hashtags[hashtag] = hashtags.get(hashtag, 0) + 1
            for hashtag, count in hashtags.items():
                self.collector.emit(Values(self.id, user, hashtag, count))

    def declare_output_fields(self, declarer):
        declarer.declare(Fields("txid", "user", "hashtag", "count"))


class RedisCommitterBolt(BaseTransactionalBolt, ICommitter):
    def prepare(self, conf, context, collector, id):
        self.id = id
        self.redis = Redis(HOST)
        self.hashtags = {}
        self.users = {}
        self.users_hashtags = {}

    def execute(self, tup):
        origin = tup.get_source_component()
        if origin == "users-splitter":
            self.count(self.users, tup.get_string_by_field("user"), 1)
        elif origin == "hashtags-splitter":
            self.count(self.hashtags, tup.get_string_by_field("hashtag"), 1)
        elif origin == "user-hashtag-join":
            key = tup.get_string_by_field("user") + ":" + tup.get_string_by_field("hashtag")
            self.count(self.users_hashtags, key, tup.get_integer_by_field("count"))

    def count(self, counts, key, by):
        counts[key] = counts.get(key, 0) + by

    def finish_batch(self):
        current = self.id.get_transaction_id()
        if self.redis.get(LAST_COMMITTED) == current:
            return
        multi = self.redis.multi()
        multi.set(LAST_COMMITTED, current)
        for hashtag, count in self.hashtags.items():
            multi.hincrby("hashtags", hashtag, count)
        for user, count in self.users.items():
            multi.hincrby("users", user, count)
        for key, count in self.users_hashtags.items():
            multi.hincrby("users_hashtags", key, count)
        multi.exec()


def topology():
    builder = TransactionalTopologyBuilder("tweets", "spout", TweetsTransactionalSpout())
    builder.set_bolt("users-splitter", UserSplitterBolt(), 4).shuffle_grouping("spout")
    builder.set_bolt("hashtags-splitter", HashtagSplitterBolt(), 4).shuffle_grouping("spout")
    join = builder.set_bolt("user-hashtag-join", UserHashtagJoinBolt(), 8)
    join.fields_grouping("users-splitter", Fields("tweet_id"), "users")
    join.fields_grouping("hashtags-splitter", Fields("tweet_id"), "hashtags")
    committer = builder.set_bolt("redis-committer", RedisCommitterBolt())
    committer.global_grouping("users-splitter", "users")
    committer.global_grouping("hashtags-splitter", "hashtags")
    committer.global_grouping("user-hashtag-join")
    return builder.build_topology()


config = Config()
config.register_serialization(TransactionMetadata)
