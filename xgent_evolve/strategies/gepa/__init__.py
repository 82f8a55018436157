"""The rules of GEPA, and the search that puts them in order (requirement I5).

GEPA keeps a pool of versions and their scores case by case. A step reflects on a few cases and
changes one component of a parent that is best somewhere; what is better on those cases joins the
pool. The best of the pool must hold on cases that no step saw.

Sources: the description of a port, which wins; its engine; and gepa 0.1.4.
docs/strategies-gepa.md lists every difference. The search asks for measurements and changes and
keeps no other state than what it is told, so that it goes on to the same end when it is replayed.
"""
