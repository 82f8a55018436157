"""Search strategies: each is one function that reads like its algorithm (requirement I1)."""
