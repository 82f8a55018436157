"""Putting new text into a working tree: all files or none, and never over a person's edit.

`plan` says what a change is and what stands in its way (pure), `worktree` touches the disk without
following a link, `transaction` carries a plan out so that a crash at any step can be undone.
"""
