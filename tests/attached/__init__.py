"""Stream tables that read tables of other databases."""
