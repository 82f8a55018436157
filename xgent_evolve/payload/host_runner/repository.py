"""The agent's Git repository: one fresh commit of the workspace, and nothing else.

No later history, no remote, tag, reflog or object that no commit needs, so nothing in it can tell
what became of the task. It is made here, once for every workspace, and kept for the next one.
"""

import binascii
import fcntl
import json
import os
import shutil
import tempfile

from durable import TEMPORARY, canonical, sync_directory, write_durable
from packs import write_pack
from trees import Node, bytes_node, part_node

PERSON = b"Task <task@localhost> 946684800 +0000"
"""The same for everybody and for ever: the commit's id depends on the files alone."""
MESSAGE = b"State of the task\n"
CONFIG = b"""\
[core]
\trepositoryformatversion = 0
\tfilemode = true
\tbare = false
[user]
\tname = Agent
\temail = agent@localhost
"""
BRANCH = b"main"


def repository_nodes(root, nodes, key):
    """Return the nodes of `.git` for a workspace; `key` is the hash of its facts."""
    directory = kept_repository(root, tracked(nodes), key)
    with open(os.path.join(directory, "facts.json"), "rb") as stream:
        facts = json.loads(stream.read().decode("ascii"))
    pack = b".git/objects/pack/pack-" + facts["pack"].encode("ascii")
    found = {
        b".git/HEAD": bytes_node(b"ref: refs/heads/" + BRANCH + b"\n"),
        b".git/config": bytes_node(CONFIG),
        b".git/refs/heads/" + BRANCH: bytes_node(facts["commit"].encode("ascii") + b"\n"),
        b".git/index": part_node(os.path.join(directory, "index"), 0o644),
        pack + b".pack": part_node(os.path.join(directory, "pack"), 0o444),
        pack + b".idx": part_node(os.path.join(directory, "idx"), 0o444),
    }
    for name in (b"", b"/objects", b"/objects/info", b"/objects/pack", b"/refs", b"/refs/heads"):
        found[b".git" + name] = Node("dir", 0o755, 0)
    found[b".git/refs/tags"] = Node("dir", 0o755, 0)
    return found


def tracked(nodes):
    """Return the part of a workspace that Git can hold: nothing that is Git's own."""
    return {
        name: node
        for name, node in nodes.items()
        if name and not any(part.lower() == b".git" for part in name.split(b"/"))
    }


def kept_repository(root, nodes, key):
    """Return the directory with the parts of a repository; it is made when it is not there."""
    directory = os.path.join(root, "repositories")
    os.makedirs(directory, mode=0o700, exist_ok=True)
    final = os.path.join(directory, key)
    with open(os.path.join(directory, "lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not os.path.isdir(final):
            for name in os.listdir(directory):
                if name.startswith(TEMPORARY):
                    shutil.rmtree(os.path.join(directory, name))
            make_repository(directory, nodes, final)
    return final


def make_repository(directory, nodes, final):
    """Make the parts of a repository and give them their name when all of them are durable."""
    temporary = tempfile.mkdtemp(prefix=TEMPORARY, dir=directory)
    made = write_pack(os.path.join(temporary, "pack"), nodes, commit_content)
    commit, checksum, pack_index, checkout_index = made
    write_durable(os.path.join(temporary, "idx"), pack_index)
    write_durable(os.path.join(temporary, "index"), checkout_index)
    facts = {"commit": hexadecimal(commit), "pack": hexadecimal(checksum)}
    write_durable(os.path.join(temporary, "facts.json"), canonical(facts))
    os.replace(temporary, final)
    sync_directory(directory)


def commit_content(tree):
    """Return the content of the one commit."""
    return b"tree %s\nauthor %s\ncommitter %s\n\n%s" % (
        hexadecimal(tree).encode("ascii"),
        PERSON,
        PERSON,
        MESSAGE,
    )


def hexadecimal(digest):
    """Return a digest in hexadecimal."""
    return binascii.hexlify(digest).decode("ascii")
