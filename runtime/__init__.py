"""Runs a compiled topology: the only room that knows Spark and ZooKeeper."""
