"""The selection rules of RRSI (regularised recursive self-improvement) as pure functions.

RRSI keeps one incumbent. In each round it makes several candidates from it, measures all of them,
and only then decides once: a floor under the best score so far, a noise band, a price for cost and
a reward for novelty. The edits that a candidate may make are bounded by an annealed budget.

Sources: arXiv 2609.24972; google-research/rrsi at be50316; and the description of a port that
settles what the two leave open, which wins where they differ. docs/strategies-rrsi.md lists every
difference. Nothing here measures, asks a model or keeps state: the rules take recorded facts.
"""
