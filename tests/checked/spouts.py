"""What the programs share."""

from stormline import Fields, MemoryTransactionalSpout, TransactionalTopologyBuilder


def words():
    return MemoryTransactionalSpout({0: ["a", "b"], 1: ["c"]}, Fields("word"), 2)


def chain(name, bolt, committer=None, spout=None):
    builder = TransactionalTopologyBuilder(name, "words", spout or words(), 1)
    builder.set_bolt("bolt", bolt, 2).shuffle_grouping("words")
    if committer is not None:
        builder.set_bolt("store", committer).global_grouping("bolt")
    return builder.build_topology()
