"""Whether a task and the case that uses it speak of the same image and directory. Pure."""

from __future__ import annotations

from xgent_evolve.errors import Fault
from xgent_evolve.spec.cases import Case
from xgent_evolve.spec.paths import within
from xgent_evolve.tasks.findings import Findings, shown
from xgent_evolve.tasks.settings import TaskSettings

DELIVERED = "/logs/artifacts"
"""Where Harbor's artifacts lie by default; nothing has to be there."""


def check_agreement(settings: TaskSettings, case: Case, file: str, findings: Findings) -> None:
    """Compare what the task says of its place with the case of the JobSpec."""
    if settings.workdir is not None and settings.workdir != case.repo_path:
        findings.faults.append(
            Fault(
                code="E_SPEC_TASK_MISMATCH",
                message="task and JobSpec name different working directories",
                where=f"{file}: environment.workdir (case {case.id})",
                expected=f"repo_path of the case: {case.repo_path}",
                found=settings.workdir,
                fix=f'set "repo_path" of the case to {shown(settings.workdir)}',
            )
        )
    _check_image(settings, case, file, findings)
    for path in settings.artifacts:
        inside = not path.startswith("/") or within(path, case.repo_path)
        if not inside and not within(path, DELIVERED):
            findings.faults.append(
                Fault(
                    code="E_SPEC_TASK_FEATURE",
                    message="the task asks for artifacts outside its working directory",
                    where=f"{file}: artifacts (case {case.id})",
                    expected=f"paths below {case.repo_path}, which are delivered anyway",
                    found=path,
                    fix="use a task whose result lies in its working directory",
                )
            )


def _check_image(settings: TaskSettings, case: Case, file: str, findings: Findings) -> None:
    named = settings.docker_image
    if named is None:
        return
    where = f"{file}: environment.docker_image (case {case.id})"
    digest = named.partition("@")[2]
    pinned_name, _, pinned_digest = case.image.rpartition("@")
    if digest and pinned_name and digest != pinned_digest:
        findings.faults.append(
            Fault(
                code="E_SPEC_TASK_MISMATCH",
                message="task and JobSpec name different images",
                where=where,
                expected=f"image of the case: {case.image}",
                found=named,
                fix=f'set "image" of the case to {shown(named)}',
            )
        )
    elif not pinned_name or _repository(named.partition("@")[0]) != _repository(pinned_name):
        message = f"the task names the image {named} and the case uses {case.image}"
        findings.warn("W_TASK_IMAGE", message, where)


def _repository(reference: str) -> str:
    """Return an image's name without its tag; the registry's port is no tag."""
    head, slash, last = reference.rpartition("/")
    return f"{head}{slash}{last.partition(':')[0]}"
