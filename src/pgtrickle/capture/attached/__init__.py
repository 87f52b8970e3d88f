"""Tables of other databases as sources: stand-ins, copies that follow, and the broker."""
