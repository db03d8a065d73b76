"""Sequence-to-sequence and attention models in Keras 3.

Importing this package imports neither TensorFlow nor Keras; its parts do.
"""

import os

# Keras and TensorFlow read these once, when they are first imported.
os.environ.setdefault("KERAS_BACKEND", "tensorflow")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

__version__ = "0.1.0"
