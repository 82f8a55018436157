"""From recorded outcomes to a verdict: pure, deterministic, and careful with what is missing.

`outcomes` says what a trial can yield, `pairing` averages and pairs, `bootstrap` makes the
interval, `missing` its bounds, `decide` the verdict, `power` what more would be needed, and
`compare` puts them together. Nothing here reads a clock, a file or an environment.
"""
