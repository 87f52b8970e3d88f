"""The interfaces to the commands: the command line, statements, Python, and a demonstration."""
