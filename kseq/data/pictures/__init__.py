"""Pictures and their captions."""
