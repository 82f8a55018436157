"""An agent's transcript as HTML: messages, commands with what they printed, edits, plans."""

from __future__ import annotations

from xgent_evolve.harbor.transcript import (
    Command,
    Cut,
    Entry,
    FileChange,
    Message,
    Problem,
    Reasoning,
    TodoList,
    ToolCall,
    Transcript,
    Unknown,
)
from xgent_evolve.report.excerpt import block, cut, words

MOST_ENTRIES = 180
MOST_CHARACTERS = 120_000
"""About so many characters of one transcript are shown, shared by its entries."""
ENTRY_CHARACTERS = (400, 6000)
"""Least and most characters of one text."""
_WHERE = "the stored stdout has all of it"


def transcript_html(transcript: Transcript) -> str:
    """Return a transcript; long ones without their middle, long texts without theirs."""
    entries = transcript.entries
    if not entries:
        return "<p>The agent printed no event.</p>"
    first = MOST_ENTRIES * 2 // 3
    shown = min(len(entries), MOST_ENTRIES)
    least, most = ENTRY_CHARACTERS
    limit = max(least, min(most, MOST_CHARACTERS // shown))
    items = [_item(entry, limit) for entry in entries[:MOST_ENTRIES]]
    if len(entries) > MOST_ENTRIES:
        left_out = f"{len(entries) - MOST_ENTRIES:,} of {len(entries):,} entries are left out here"
        items = [
            *(_item(entry, limit) for entry in entries[:first]),
            f"<li>{cut(f'{left_out}; {_WHERE}')}</li>",
            *(_item(entry, limit) for entry in entries[first - MOST_ENTRIES :]),
        ]
    lines = ['<ol class="transcript">', *items, "</ol>"]
    if transcript.unread_lines:
        lines.append(
            cut(f"{transcript.unread_lines:,} lines of the stream are no events; {_WHERE}")
        )
    return "\n".join(lines)


def _item(entry: Entry, limit: int) -> str:
    match entry:
        case Message(text=text):
            return _li("message", "Agent", block(text, limit, _WHERE))
        case Reasoning(text=text):
            return _li(
                "reasoning", "Reasoning, as summed up by the model", block(text, limit, _WHERE)
            )
        case Command():
            return _command(entry, limit)
        case FileChange(changes=changes, status=status):
            text = "\n".join(f"{kind} {path}" for kind, path in changes)
            return _li("edit", f"Edit, {_status(status)}", block(text, limit, _WHERE))
        case TodoList(items=items):
            text = "\n".join(f"[{'x' if done else ' '}] {what}" for done, what in items)
            return _li("plan", "Plan, as it last stood", block(text, limit, _WHERE))
        case ToolCall(name=name, arguments=arguments, result=result, status=status):
            body = block(arguments, limit // 2, _WHERE)
            if result:
                body += "\n" + block(result, limit // 2, _WHERE, kind="output", output=True)
            return _li("tool", f"Tool {name}, {_status(status)}", body)
        case Problem(text=text):
            return _li("problem", "Codex reports", block(text, limit, _WHERE, output=True))
        case Unknown(kind=kind, text=text):
            return _li(
                "other", f"Event {kind or 'without a type'}", block(text, limit // 2, _WHERE)
            )
        case Cut(dropped_bytes=dropped):
            sentence = f"{dropped:,} bytes of the stream were not captured: it was too long"
            return f"<li>{cut(sentence)}</li>"


def _command(entry: Command, limit: int) -> str:
    if entry.status == "in_progress":
        end = "its end was not told"
    elif entry.exit_code is None:
        end = "exit code unknown"
    else:
        end = f"exit code {entry.exit_code}"
    body = block(entry.command, limit // 2, _WHERE, kind="command")
    if entry.output:
        body += "\n" + block(entry.output, limit, _WHERE, kind="output", output=True)
    else:
        body += '\n<p class="quiet">No output.</p>'
    return _li("failed command" if entry.exit_code else "command", f"Command, {end}", body)


def _status(status: str) -> str:
    return "its end was not told" if status == "in_progress" else status


def _li(kind: str, title: str, body: str) -> str:
    return f'<li class="{kind}">\n<p class="what">{words(title)}</p>\n{body}\n</li>'
