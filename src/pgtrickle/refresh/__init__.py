"""One refresh, from claim to commit."""
