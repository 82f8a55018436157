"""How a search went, as part of the report document: every candidate, kept or not, and why."""

from __future__ import annotations

from xgent_evolve.measure.diagnosis import Diagnosis
from xgent_evolve.report.document import Document, clean
from xgent_evolve.report.inputs import Candidate, Confirmed, Search


def search_document(search: Search) -> Document:
    """Return the block `search` of report.json."""
    return {
        "strategy": search.strategy,
        "best": search.best,
        "stop": search.stop,
        "diagnosis": diagnosis_document(search.diagnosis),
        "candidates": [_candidate(candidate) for candidate in search.candidates],
    }


def diagnosis_document(found: Diagnosis) -> Document:
    """Return what the baseline's own trials say (requirement H8)."""
    return {
        "text": found.text,
        "mean": found.mean,
        "headroom": found.headroom,
        "generation_noise": found.generation_noise,
        "paired_groups": found.paired_groups,
        "required_groups": found.required_groups,
        "proceed": found.proceed,
        "reason": found.reason,
    }


def confirmation_document(confirmed: Confirmed) -> Document:
    """Return the block `confirmation` of report.json."""
    return {
        "status": confirmed.status,
        "candidate": confirmed.candidate,
        "content": confirmed.content,
        "reason": clean(confirmed.reason),
    }


def _candidate(candidate: Candidate) -> Document:
    comparison = candidate.comparison
    interval = None if comparison is None else comparison.interval
    return {
        "number": candidate.number,
        "id": candidate.id,
        "parent": candidate.parent,
        "content": candidate.content,
        "decision": candidate.decision,
        "reasons": [clean(reason) for reason in candidate.reasons],
        "hypothesis": clean(candidate.hypothesis),
        "expected_effect": clean(candidate.expected_effect),
        "counterexample": clean(candidate.counterexample),
        "changed_paths": [clean(path) for path in candidate.changed_paths],
        "diff": clean(candidate.diff),
        "diff_cut": candidate.diff_cut,
        "estimate": None if comparison is None else comparison.estimate,
        "interval": None if interval is None else {"low": interval.low, "high": interval.high},
        "paired_groups": None if comparison is None else comparison.paired_groups,
        "missing_trials": None if comparison is None else comparison.missing.missing,
    }
