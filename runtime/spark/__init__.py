"""Stages and commits as Spark jobs: the only room that knows pyspark."""
