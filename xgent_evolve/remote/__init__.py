"""The only network code: one SSH connection per host, and the host runner behind it."""
