"""Takes secrets out of a stream of bytes, also where they lie across two chunks.

A secret is found as it is, as it looks in an address (percent-encoded), as JSON writes it, and
inside base64 of whatever surrounds it, with or without line breaks.
"""

import base64
import json
import re
import urllib.parse

MARK = b"[REDACTED]"
SHORTEST_VALUE = 16
"""Strings of a credential that are shorter than this are not secret by themselves."""
SHORTEST_BASE64 = 10
"""What is left of a secret in base64, without the characters that its neighbours decide, must be
longer than what ordinary text could hold by chance."""
URL_SAFE = bytes.maketrans(b"-_", b"+/")


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


class Form:
    """One way in which a secret can be written."""

    def __init__(self, text, wrapped=False):
        self.text = text
        self.wrapped = wrapped
        """Whether it is base64, which may be broken into lines and written URL-safe."""
        self.longest = 3 * len(text) if wrapped else len(text)

    def pattern(self):
        """Return the regular expression that finds it."""
        if not self.wrapped:
            return re.escape(self.text)
        letters = (bytes([code]) for code in self.text)
        either = {b"+": rb"[+\-]", b"/": b"[/_]"}
        return rb"(?:\r?\n)?".join(either.get(letter, letter) for letter in letters)

    def begun(self, content):
        """Return how many bytes at the end of `content` could be its beginning."""
        tail = content[-self.longest :]
        plain = tail
        if self.wrapped:
            plain = tail.translate(URL_SAFE, b"\r\n")
        size = next(
            (
                size
                for size in range(min(len(self.text) - 1, len(plain)), 0, -1)
                if plain.endswith(self.text[:size])
            ),
            0,
        )
        if not self.wrapped or not size:
            return size
        # Back from letters to bytes: line breaks were left out of the count.
        position = len(tail)
        while size:
            position -= 1
            size -= tail[position] not in b"\r\n"
        return len(tail) - position


def forms(secret):
    """Return every way of writing a secret that is looked for."""
    quoted = urllib.parse.quote(secret, safe="").encode("ascii")
    texts = {secret, quoted, re.sub(rb"%[0-9A-F]{2}", lambda found: found[0].lower(), quoted)}
    text = secret.decode("utf-8", "surrogateescape")
    texts |= {
        json.dumps(text, ensure_ascii=escaped)[1:-1].encode("utf-8", "surrogateescape")
        for escaped in (True, False)
    }
    found = [Form(text) for text in texts]
    for before in range(3):
        encoded = base64.b64encode(b"\0" * before + secret).rstrip(b"=")
        end = len(encoded) - bool((before + len(secret)) % 3)
        core = encoded[(0, 2, 3)[before] : end]
        if len(core) >= SHORTEST_BASE64:
            found.append(Form(core, wrapped=True))
    return found


class Redactor:
    """Replaces every secret in a sequence of chunks; the result does not depend on their borders.

    Where secrets overlap, the first wins, and of those the longest.
    """

    def __init__(self, secrets):
        self.forms = [form for secret in sorted(set(secrets)) for form in forms(secret)]
        self.forms.sort(key=lambda form: form.longest, reverse=True)
        patterns = [form.pattern() for form in self.forms]
        self.pattern = re.compile(b"|".join(patterns)) if patterns else None
        self.longest = self.forms[0].longest if self.forms else 0
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

    def so_far(self, content):
        """Return content that is still being written, without secrets.

        What could be the beginning of a secret at its end is left out, so what is returned for
        more of the same content begins with what is returned now.
        """
        end = len(content) - self.begun(content)
        for match in self.pattern.finditer(content) if self.pattern else ():
            if match.start() >= end:
                break
            if match.end() > end:
                # Whole already: only what follows it can be the beginning of another.
                end = len(content) - self.begun(content[match.end() :])
        return b"".join(self.clean([content[:end]]))

    def begun(self, content):
        """Return how many bytes at the end could be the beginning of a secret."""
        return max((form.begun(content) for form in self.forms), default=0)

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
