"""The JobSpec: read it, point at the place of every fault, check it, publish its schema."""
