"""Slots: a workflow asks for one, and gets the recorded result or has it obtained."""
