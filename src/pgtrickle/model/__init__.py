"""The words of the product: frozen values without any input or output."""
