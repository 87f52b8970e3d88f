"""`python -m pgtrickle.interfaces.cli` is `pgtrickle`."""

from pgtrickle.interfaces.cli import main

main()
