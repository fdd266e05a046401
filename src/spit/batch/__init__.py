"""Corpora: images of folders, shards, tables and object stores to Parquet, on one machine or a Ray cluster.

:mod:`~spit.batch.run` does a whole corpus; :class:`~spit.batch.operations.Operation` is what other frameworks call.
"""
