"""Task folders in Harbor's format: what of them is honoured, and what is refused by name."""
