"""The durable state in ZooKeeper: the only room that knows kazoo."""
