"""What the user declares, checked and compiled: pure data, without Spark and without ZooKeeper."""
