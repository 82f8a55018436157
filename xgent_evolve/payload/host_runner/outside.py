"""What a command changed in its container outside of the workspace: named, not kept."""

from engine import patiently, quote

PASSING = ("/dev", "/logs", "/proc", "/run", "/sys", "/tmp", "/var/tmp", "/xgent")  # noqa: S108
"""Places that nothing is expected to outlast, or that are our own."""
ENGINES = (
    "/.dockerenv",
    "/etc/hostname",
    "/etc/hosts",
    "/etc/mtab",
    "/etc/resolv.conf",
    "/sbin/docker-init",
    "/usr/sbin/docker-init",
)
"""What the engine itself makes in every container."""
NAMED = 20


def changes_outside(engine, container, request):
    """Return how many paths differ from the image, and the first of them by name.

    The engine lists them without reading a file. Left out are what was placed there beforehand,
    the workspace, and directories of which something inside is listed.
    """
    path = "/containers/%s/changes" % quote(container)
    listed = patiently(lambda: engine.get(path)) or []
    own = {"/" + item["path"] for item in request["inputs"]}
    settings = request["container"].get("HostConfig", {})
    mounted = [mount["Target"] for mount in settings.get("Mounts", [])] + list(
        settings.get("Tmpfs", {})
    )
    workspace = request["workspace"]["path"]
    left_out = PASSING + ENGINES + (workspace, *request["directories"], *mounted)
    changed = {
        item["Path"]
        for item in listed
        if item["Path"] not in own and not below_any(item["Path"], left_out)
    }
    # A directory counts as changed when something in it is: ours or one of those.
    parents = {parent for name in changed | own for parent in parents_of(name)}
    parents |= {parent for name in left_out for parent in parents_of(name)}
    found = sorted(changed - parents)
    return {"count": len(found), "paths": found[:NAMED]}


def below_any(name, roots):
    """Say whether a path is or lies below one of `roots`."""
    return any(name == root or name.startswith(root.rstrip("/") + "/") for root in roots)


def parents_of(name):
    """Return every directory above an absolute path."""
    parts = name.split("/")[1:-1]
    return {"/" + "/".join(parts[: index + 1]) for index in range(len(parts))}
