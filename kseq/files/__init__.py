"""Files and paths that every room reads and writes."""
