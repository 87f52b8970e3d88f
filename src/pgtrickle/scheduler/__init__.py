"""The scheduler: `policy` decides what is due and in which order, `service` acts on it."""
