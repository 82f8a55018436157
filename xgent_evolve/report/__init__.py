"""What a run found, for machines (report.json) and for people (report.md).

`inputs` is what a caller hands over, `model` makes the document, `text` renders it. A report is
a function of recorded facts: made again anywhere, it has the same bytes (requirement A8).
"""
