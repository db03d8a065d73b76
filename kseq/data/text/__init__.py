"""Pairs of texts, and text as SentencePiece pieces."""
