"""From a JobSpec to a Protocol: the one path that validate and run share.

`validate` builds with blobs in memory and writes nothing; `run` builds into a run directory. Both
get the same Protocol, so what validate shows is what run would do (requirements A1, A2, C2).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

from xgent_evolve.canonical import digest_bytes
from xgent_evolve.errors import DriftError, InvalidError, StoreError
from xgent_evolve.freeze.code import code_digests, payload_files, require_code
from xgent_evolve.freeze.conditions import freeze_conditions
from xgent_evolve.freeze.evaluation import freeze_evaluation
from xgent_evolve.freeze.git import Repository
from xgent_evolve.freeze.model_ca import freeze_model_ca
from xgent_evolve.freeze.places import place, spec_path
from xgent_evolve.freeze.protocol import FrozenCase, Protocol
from xgent_evolve.freeze.reach import require_reachable
from xgent_evolve.freeze.reading import take_content
from xgent_evolve.freeze.skill_trees import require_readable_skills
from xgent_evolve.freeze.snapshot import Snapshot, require_no_secrets
from xgent_evolve.freeze.source import freeze_commit, freeze_source
from xgent_evolve.freeze.surface import Surface, find_surface
from xgent_evolve.freeze.tasks import ReadTask, read_tasks
from xgent_evolve.freeze.views import freeze_views
from xgent_evolve.ids import Digest
from xgent_evolve.spec.cases import RepoSource
from xgent_evolve.spec.load import LoadedSpec
from xgent_evolve.spec.paths import last_name
from xgent_evolve.spec.surfaces import AGENTS_FILE
from xgent_evolve.store.bundles import Blobs, load_bundle, make_tree, put_bundle


def build_protocol(loaded: LoadedSpec, blobs: Blobs) -> Protocol:
    """Freeze everything that a study depends on into `blobs` and return its Protocol.

    Reads the target repository, the task directories and the optimizer's method; writes nowhere
    but into `blobs`, and leaves the repository's Git state alone.

    Raises:
        InvalidError: a path, a skill, a task or a condition cannot be used as written.
        AuthorityError: a path may not leave this machine.
        RefusedError: the tree is in a state that cannot be frozen (E_FREEZE codes).
        StoreError: the bytes could not be kept.

    """
    with blobs.gathering():
        return _build(loaded, blobs)


def _build(loaded: LoadedSpec, blobs: Blobs) -> Protocol:
    _require_no_secrets_written(loaded)
    tasks = read_tasks(loaded)
    repository = Repository.open(
        loaded.resolve(loaded.spec.target.repo), place(loaded, "target", "repo")
    )
    _require_ancestors(loaded, repository)
    snapshot = freeze_source(loaded, repository, blobs)
    surface = find_surface(loaded, snapshot)
    require_readable_skills(loaded, snapshot, blobs)
    conditions = freeze_conditions(loaded, surface, snapshot, blobs)
    workspaces = _freeze_workspaces(loaded, repository, snapshot, surface, blobs)
    require_reachable(loaded, conditions, workspaces.values(), blobs)
    return Protocol(
        schema_version=1,
        spec=loaded.spec,
        spec_bytes=blobs.put(loaded.content),
        source=snapshot.difference,
        conditions=conditions,
        cases=[
            _freeze_case(loaded, number, task, workspaces, blobs)
            for number, task in enumerate(tasks)
        ],
        method=_freeze_method(loaded, blobs),
        model_ca=freeze_model_ca(loaded, blobs),
        evaluation=freeze_evaluation(loaded, blobs),
        payload=_freeze_payload(blobs),
        code=code_digests(),
    )


def verify_frozen(protocol: Protocol, blobs: Blobs) -> None:
    """Read every byte that the protocol reaches, and compare the code that decides a score.

    Raises:
        StoreError: bytes are missing or damaged.
        DriftError: E_RUN_CODE naming the parts of the package that differ.

    """
    require_code(protocol.code)
    for digest in reachable(protocol, blobs):
        blobs.get(digest)


def reachable(protocol: Protocol, blobs: Blobs) -> list[Digest]:
    """Return every digest that the protocol depends on, each once, bundles before their files.

    Raises:
        StoreError: a bundle is missing or damaged, or a file has another size than recorded.

    """
    digests: dict[Digest, None] = dict.fromkeys(
        [
            protocol.spec_bytes,
            *protocol.payload.values(),
            *(case.instruction for case in protocol.cases),
            *(case.task_file for case in protocol.cases if case.task_file is not None),
        ]
    )
    for digest in (protocol.method, protocol.model_ca):
        if digest is not None:
            digests[digest] = None
    for bundle in dict.fromkeys(_bundles(protocol)):
        digests[bundle] = None
        for entry in load_bundle(blobs, bundle):
            if entry.blob is None:
                continue
            if not blobs.has(entry.blob, entry.size):
                raise StoreError(
                    "a frozen file is missing or has another size",
                    code="E_STORE_MISSING",
                    where=f"{entry.path} in bundle {bundle}",
                    expected=f"{entry.blob} with {entry.size} bytes",
                    fix="restore the run directory from a copy",
                )
            digests[entry.blob] = None
    return list(digests)


def _bundles(protocol: Protocol) -> Iterator[Digest]:
    if protocol.evaluation is not None:
        yield protocol.evaluation
    for condition in protocol.conditions:
        yield condition.agents
        if condition.skill is not None:
            yield condition.skill.bundle
        for skill in condition.fixed_skills:
            yield skill.bundle
    for case in protocol.cases:
        yield from (case.public, case.grader, case.oracle)
        if case.workspace is not None:
            yield case.workspace


def _freeze_case(
    loaded: LoadedSpec,
    number: int,
    task: ReadTask,
    workspaces: dict[str, Digest],
    blobs: Blobs,
) -> FrozenCase:
    case = loaded.spec.cases[number]
    views = freeze_views(loaded, number, blobs)
    return FrozenCase(
        id=case.id,
        task_file=None if task.content is None else blobs.put(task.content),
        limits=task.limits,
        variables=task.variables,
        instruction=views.prompt,
        public=put_bundle(blobs, views.public),
        grader=put_bundle(blobs, views.grader),
        oracle=put_bundle(blobs, views.oracle),
        workspace=workspaces[case.source.base] if isinstance(case.source, RepoSource) else None,
    )


def _freeze_workspaces(
    loaded: LoadedSpec,
    repository: Repository,
    snapshot: Snapshot,
    surface: Surface,
    blobs: Blobs,
) -> dict[str, Digest]:
    """Return the workspace bundle for each base that a case starts from.

    The present base is the frozen working tree; an older one comes from its own commit, so that
    no present file is laid over old code.
    """
    target = loaded.spec.target
    workspaces: dict[str, Digest] = {}
    for number, case in enumerate(loaded.spec.cases):
        if not isinstance(case.source, RepoSource):
            continue
        _require_own_repository(loaded, number, case.source, repository)
        base = case.source.base
        if base in workspaces:
            continue
        if base == target.base_commit:
            start = snapshot
        elif base in target.compatible_bases:
            paths = [spec_path(path) for path in loaded.spec.source.paths]
            start = freeze_commit(loaded, repository, base, paths, blobs)
        else:
            raise InvalidError(
                "a case starts from a commit that the target does not declare",
                code="E_SPEC_CASE_BASE",
                where=place(loaded, "cases", number, "source", "base"),
                expected="target.base_commit or one of target.compatible_bases",
                found=base,
                fix="add the commit to target.compatible_bases if the text suits it",
            )
        kept = [
            entry
            for entry in start.without(surface.skill_roots)
            if last_name(entry.path) != AGENTS_FILE
        ]
        if not kept:
            raise _empty_workspace(loaded, number, start.origin)
        workspaces[base] = put_bundle(blobs, make_tree(kept))
    return workspaces


def _require_own_repository(
    loaded: LoadedSpec, number: int, source: RepoSource, repository: Repository
) -> None:
    named = loaded.resolve(source.repo).resolve()
    if named != repository.root:
        raise InvalidError(
            "a case of kind repo starts from another repository",
            code="E_SPEC_CASE_REPO",
            where=place(loaded, "cases", number, "source", "repo"),
            expected=str(repository.root),
            found=str(named),
            fix="use the target's repository, or source.kind local or public",
        )


def _empty_workspace(loaded: LoadedSpec, number: int, origin: str) -> InvalidError:
    return InvalidError(
        "a case of kind repo would start from an empty directory",
        code="E_SPEC_WORKSPACE",
        where=place(loaded, "cases", number, "source"),
        expected="files of source.paths besides skills and AGENTS.md",
        found=f"none in {origin}",
        fix="list the code that the task needs in source.paths",
    )


def _require_ancestors(loaded: LoadedSpec, repository: Repository) -> None:
    target = loaded.spec.target
    repository.require_commit(target.base_commit, place(loaded, "target", "base_commit"))
    for number, commit in enumerate(target.compatible_bases):
        where = place(loaded, "target", "compatible_bases", number)
        repository.require_commit(commit, where)
        if not repository.is_ancestor(commit, target.base_commit):
            raise InvalidError(
                "a compatible base is not an ancestor of the base",
                code="E_SPEC_ANCESTOR",
                where=where,
                expected=f"an ancestor of {target.base_commit}",
                found=commit,
                fix="drop it; in a shallow clone, fetch the history first",
            )


def _require_no_secrets_written(loaded: LoadedSpec) -> None:
    """Look for secrets in the text that the JobSpec itself brings: overrides and the like."""
    allowed = [spec_path(path) for path in loaded.spec.authority.allow_secrets_in]
    for condition in loaded.spec.conditions:
        written = [
            take_content(spec_path(name), text.encode("utf-8", "surrogatepass"))
            for name, text in condition.overrides.items()
            if text is not None
        ]
        require_no_secrets(written, f"{loaded.path}: overrides of {condition.id}: ", allowed)


def _freeze_method(loaded: LoadedSpec, blobs: Blobs) -> Digest | None:
    """Keep the optimizer's instructions after comparing them with the hash in the JobSpec."""
    optimizer = loaded.spec.optimizer
    if optimizer is None:
        return None
    path = loaded.resolve(optimizer.method_path)
    try:
        content = path.read_bytes()
    except OSError as error:
        raise InvalidError(
            "the optimizer's method cannot be read",
            code="E_SPEC_PATH",
            where=place(loaded, "optimizer", "method_path"),
            expected="a file",
            found=f"{path}: {error.strerror}",
            fix="correct the path",
        ) from error
    found = hashlib.sha256(content).hexdigest()
    require_no_secrets([take_content(path.name, content)], str(path.parent))
    if found != optimizer.method_sha256:
        raise DriftError(
            "the optimizer's method is not the one that the JobSpec names",
            code="E_FREEZE_METHOD",
            where=f"{path} ({place(loaded, 'optimizer', 'method_sha256')})",
            expected=optimizer.method_sha256,
            found=found,
            fix="restore the file, or put its SHA-256 into the JobSpec",
        )
    return blobs.put(content)


def _freeze_payload(blobs: Blobs) -> dict[str, Digest]:
    files = payload_files()
    blobs.put_many(list(files.values()))
    return {path: digest_bytes(content) for path, content in files.items()}
