"""Sequences of vectors, such as bits."""

import json
import os

from kseq.data import DataError
from kseq.data.files.text_files import LONGEST_LINE
from kseq.sources.numbered_lines import numbered_lines
from kseq.sources.source_type import SourceType


def _read_lines(model, options):
    from kseq.data.algorithms.as_vectors import as_vectors

    num_features = model.preprocessor.num_features

    def read(line):
        if len(line) > LONGEST_LINE:
            raise DataError(
                f"expected at most {LONGEST_LINE} bytes; found more."
            )
        try:
            sequence = json.loads(line)
        except (ValueError, RecursionError):
            raise DataError(
                "expected a JSON array of arrays of numbers; found "
                f"{os.fsdecode(line)!r:.100}."
            ) from None
        return as_vectors(sequence, num_features)

    return numbered_lines(read, as_vectors([], num_features))


VECTORS = SourceType(
    name="vectors",
    preprocessor="VectorPreprocessor",
    item="sequence",
    lines="sequences of vectors",
    command_line="< SEQUENCES",
    python="[vectors]",
    json="[[[0.5, ...]]]",
    read_lines=_read_lines,
)
