"""Measure and improve the text that steers coding agents, with evidence that stands up."""

__version__ = "0.1.0"
