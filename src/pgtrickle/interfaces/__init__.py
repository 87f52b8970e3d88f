"""How people and programs reach the commands: Python, the command line, and a demonstration."""
