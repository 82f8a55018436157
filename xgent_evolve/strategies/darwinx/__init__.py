"""The rules of DarwinX as pure functions (requirement I4).

DarwinX keeps a population of admitted versions and an archive of all measured ones. A step edits a
member, or joins two versions that solve different tasks; a cheap screening comes before a
confirmation on all tasks, which admits what gains in sum and loses nothing that its lineage had.

Sources: the description of a port, which wins, and SalesforceAIResearch/Beagle at 165343b.
docs/strategies-darwinx.md lists every difference. Nothing here measures, asks a model or keeps
state: the rules take recorded facts.
"""
