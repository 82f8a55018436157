"""The life of one execution: registered, carried out on the host, captured, cleaned."""
