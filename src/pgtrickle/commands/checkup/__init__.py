"""The checks of `pgtrickle doctor`, by what they look at."""
