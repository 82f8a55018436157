"""Takes secrets out of a stream of bytes, also where they lie across two chunks."""

import json
import re

MARK = b"[REDACTED]"
SHORTEST_VALUE = 16
"""Strings of a credential that are shorter than this are not secret by themselves."""


def secret_values(credential):
    """Return the strings to keep out of exports: the credential itself and its JSON leaves."""
    if credential is None:
        return []
    found = [credential.strip()]
    try:
        stack = [json.loads(credential.decode("utf-8"))]
    except ValueError:
        stack = []
    while stack:
        item = stack.pop()
        if isinstance(item, dict):
            stack.extend(item.values())
        elif isinstance(item, list):
            stack.extend(item)
        elif isinstance(item, str) and len(item) >= SHORTEST_VALUE:
            found.append(item.encode("utf-8"))
    return [value for value in found if len(value) >= 8]


class Redactor:
    """Replaces every secret in a sequence of chunks; the result does not depend on their borders.

    Where secrets overlap, the first wins, and of those the longest.
    """

    def __init__(self, secrets):
        ordered = sorted(set(secrets), key=len, reverse=True)
        self.pattern = re.compile(b"|".join(map(re.escape, ordered))) if ordered else None
        self.longest = len(ordered[0]) if ordered else 0
        self.count = 0

    def clean(self, chunks):
        """Yield the content of `chunks` without secrets; `count` grows with each replacement."""
        if self.pattern is None:
            for chunk in chunks:
                yield chunk
            return
        kept = b""
        for chunk in chunks:
            kept += chunk
            # A secret that begins in the last bytes may go on in the next chunk.
            done, kept = self.replace(kept, len(kept) - self.longest + 1)
            yield done
        done, kept = self.replace(kept, len(kept))
        yield done + kept

    def replace(self, content, limit):
        """Return what precedes `limit`, without the secrets that begin there, and the rest."""
        if limit <= 0:
            return b"", content
        parts, position = [], 0
        for match in self.pattern.finditer(content):
            if match.start() >= limit:
                break
            parts += [content[position : match.start()], MARK]
            position = match.end()
            self.count += 1
        cut = max(position, limit)
        parts.append(content[position:cut])
        return b"".join(parts), content[cut:]
