"""Compiled queries are kept: in the process, in files of the host, and in the catalog."""
