"""Dialogues."""
