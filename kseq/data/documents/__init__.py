"""Labelled documents."""
