"""Write a JobSpec that validates, from what can be found out (`xgent-evolve init`)."""
