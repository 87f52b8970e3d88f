"""The command line: `pgtrickle`."""

from __future__ import annotations

import sys

from pgtrickle.interfaces.cli.secrecy import hide_dsn


def main() -> None:
    """Run the command in the arguments and exit with its code."""
    hide_dsn()
    # imported here, so that a password in the arguments is hidden as early as possible
    from pgtrickle.interfaces.cli.application import run

    sys.exit(run(sys.argv[1:]))
