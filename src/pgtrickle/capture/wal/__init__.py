"""Captures changes from the write-ahead log: decodes a replication slot into the change buffers."""
