"""Scripts that are shipped to the host and into containers, as data: nothing here is imported."""
