"""Recordings of speech and their transcripts."""
