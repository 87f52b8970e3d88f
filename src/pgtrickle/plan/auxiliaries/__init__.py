"""Inner results that are kept beside a stream table: which, how a query is rewritten over them, and why."""
