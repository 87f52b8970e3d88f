"""Caches of compiled queries: in the process, in files of the host, and in the catalog."""
