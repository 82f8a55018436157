"""Takes what the supervisor hands over through a pipe, so that nobody reads the container for it.

Reading a stopped container costs some engines as much as starting one. So the supervisor, as its
very last act, when nothing else runs any more, offers the files of its control directory to
whoever listens: their bytes, a newline, a line of `wc -c` for each, their sum, their number. That
end accounts for every byte before it, so nothing that others wrote into the pipe goes unnoticed,
and the supervisor's exit status says that this end is its own. It is a copy of what stays in the
container: whatever is missing or odd about it, the container is read instead, as after every crash.
Nothing depends on the pipe but time.
"""

import os
import select
import tempfile
import threading

from durable import TEMPORARY, remove_if_there, remove_leftovers, write_all
from faults import around
from trees import Node, part_opener

CONTROL = "/xgent/ctl"
TOKEN = CONTROL + "/token"
RECORD = CONTROL + "/record"
PLACE = "/xgent/handover"
LARGEST_BYTES = 64 << 20
"""What is taken; more is left to the archive."""
LARGEST_LIST = 1 << 20
"""What the list of files may take of it."""
READ_BYTES = 1 << 16
UNPACK = """\
trap : TERM
[ ! -e /xgent/ctl/token ] || exit 87
"$0" -xpf /xgent/handover/stage.tar -C / || exit 86
exec "$@"
"""
"""Unpacks what was staged, unless the container was started before, then becomes its command."""
NOT_UNPACKED = 86
"""Its exit status when that fails; the control directory may be missing then."""
HANDED_OVER = 80
"""The supervisor's, when everything was taken; no engine reports it for anything else."""


class Handover:
    """One execution's pipe, and what came through it to this process."""

    def __init__(self, path, uuid):
        self.path = path
        self.uuid = uuid
        self.directory = os.path.join(path, "handover")
        self.pipe = os.path.join(self.directory, "export")
        self.stage = os.path.join(self.directory, "stage.tar")
        self.spool = None
        self.whole = False

    def make(self):
        """Make the directory, before the container that mounts it."""
        os.makedirs(self.directory, mode=0o755, exist_ok=True)
        os.chmod(self.directory, 0o755)
        if not os.path.exists(self.pipe):
            os.mkfifo(self.pipe)
        # The container's user writes it; the directory above is closed to others on the host.
        os.chmod(self.pipe, 0o666)

    def remove_leftovers(self):
        """Remove what a process that died was writing here."""
        if os.path.isdir(self.directory):
            remove_leftovers(self.directory)

    def mount(self):
        """Return the engine's mount of the pipe's directory: a pipe needs no writable mount."""
        return {"Type": "bind", "Source": self.directory, "Target": PLACE, "ReadOnly": True}

    @staticmethod
    def unpacking(tar, entrypoint):
        """Return the entrypoint that unpacks what was staged with the image's own tar first."""
        return ["/bin/sh", "-c", UNPACK, tar] + list(entrypoint)

    @staticmethod
    def unpacks(container):
        """Say whether a container, as the engine describes it, was made to unpack by itself."""
        return UNPACK in (container["Config"].get("Entrypoint") or [])

    def listen(self):
        """Take what comes until `stop` of the returned listener is called."""
        try:
            # Writing too, so that a writer that leaves is not the end of it.
            descriptor = os.open(self.pipe, os.O_RDWR | os.O_NONBLOCK)
        except OSError:  # gone, or not made: there is still the container
            descriptor = None
        return Listener(self, descriptor)

    def take(self, descriptor, stopped):
        """Keep everything that is written until the container has ended."""
        poll = select.poll()
        poll.register(descriptor, select.POLLIN)
        poll.register(stopped, select.POLLIN)
        size, last = 0, False
        while True:
            last = last or stopped in [found for found, _ in poll.poll()]
            try:
                content = os.read(descriptor, READ_BYTES)
            except BlockingIOError:
                if last:
                    return size > 0
                continue
            size += len(content)
            if size > LARGEST_BYTES:
                return False
            self.keep(content)

    def keep(self, content):
        """Add to the file that this process reads the handed files from."""
        if self.spool is None:
            descriptor, path = tempfile.mkstemp(prefix=TEMPORARY, dir=self.path)
            self.spool = (descriptor, path)
        write_all(self.spool[0], content)

    def nodes(self):
        """Return the control files that were handed over by name, or None without all of them."""
        if not self.whole or self.spool is None:
            return None
        descriptor, path = self.spool
        total = os.fstat(descriptor).st_size
        end = os.pread(descriptor, LARGEST_LIST, max(total - LARGEST_LIST, 0))
        listed = parse_list(end, total)
        if listed is None:
            return None
        offset, nodes = 0, {}
        for name, size in listed:
            nodes[name] = Node("file", 0o644, 0, size=size, opener=part_opener(path, offset, size))
            offset += size
        return nodes if b"record" in nodes else None

    def discard(self):
        """Forget what came."""
        if self.spool is not None:
            os.close(self.spool[0])
            remove_if_there(self.spool[1])
            self.spool = None


class Listener:
    """A thread that takes what is handed over while somebody waits for the container's end."""

    def __init__(self, handover, descriptor):
        self.handover = handover
        self.descriptor = descriptor
        self.thread = None
        if descriptor is not None:
            self.stopped, self.stopper = os.pipe()
            self.thread = threading.Thread(target=self.run)
            self.thread.start()

    def run(self):
        """Take one stream; a full disk leaves it to the container, which keeps everything."""
        uuid = self.handover.uuid
        try:
            with around("export.receive", uuid):
                self.handover.whole = self.handover.take(self.descriptor, self.stopped)
        except OSError:
            self.handover.whole = False
        finally:
            os.close(self.descriptor)  # a supervisor that still writes learns that nobody reads

    def stop(self):
        """Return when everything was taken; nobody writes any more."""
        if self.thread is not None:
            os.close(self.stopper)
            self.thread.join()
            os.close(self.stopped)


def parse_list(end, total):
    """Return names and sizes in the order of their bytes; None when they do not account for all.

    `end` is the end of a stream of `total` bytes.
    """
    lines = end.split(b"\n")
    if len(lines) < 4 or lines[-1] or not lines[-2].isdigit():
        return None
    count = int(lines[-2])
    listed = [parse_line(line) for line in lines[-3 - count : -2]]
    if count < 2 or len(listed) != count + 1 or None in listed:
        return None
    (last, bytes_sum), files = listed.pop(), listed
    # Before the list there are as many bytes as it says, and a newline.
    before = total - sum(len(line) + 1 for line in lines[-3 - count : -1]) - 1
    root = CONTROL.encode("ascii") + b"/"
    good = (
        last == b"total"
        and bytes_sum == sum(size for _, size in files) == before
        and all(name.startswith(root) for name, _ in files)
    )
    return [(name[len(root) :], size) for name, size in files] if good else None


def parse_line(line):
    """Return name and size from a line of `wc -c`, or None."""
    size, _, name = line.lstrip(b" ").partition(b" ")
    return (name, int(size)) if size.isdigit() else None
