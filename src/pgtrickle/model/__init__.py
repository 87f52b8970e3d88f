"""The values that all packages share: frozen dataclasses, enums and errors, without input or output."""
