"""Types of options that say which values are valid, with their checks.

A field `steps: PositiveInt = 2250` refuses 0, -1 and 10**30 with a message
that names the option.
"""

import functools
import importlib.util
import math
import numbers
import re
from pathlib import Path
from typing import Annotated, Literal, NamedTuple

from kseq.data.files.prepared_folder import is_prepared
from kseq.data.files.url_files import is_url
from kseq.user_error import BELOW_ONE

_LARGEST = 2**31 - 1  # int32, as in most of TensorFlow


def option(name):
    """The option of a field: `batch_tokens` is `--batch-tokens`.

    A word that Python reserves has an underscore at its end: `from_`.
    """
    return f"--{name.rstrip('_').replace('_', '-')}"


class Limits(NamedTuple):
    """The smallest and the largest number that are valid."""

    least: float
    most: float
    expected: str  # in words

    def check(self, value):
        """Returns what is wrong with a value, or None."""
        is_number = isinstance(value, numbers.Real)
        if is_number and self.least <= value <= self.most:  # nan is not
            return None
        return f"expected {self.expected}"


class Even:
    """A multiple of two."""

    def check(self, value):
        """Returns what is wrong with a value, or None."""
        return "expected an even number" if value % 2 else None


class MultipleOf(NamedTuple):
    """A multiple of another option, which is a positive integer."""

    other: str

    def check(self, value, divisor):
        """Returns what is wrong with a value, or None."""
        if not isinstance(divisor, int) or divisor < 1:
            return None  # its own rule refuses it
        if value % divisor:
            return f"expected a multiple of {option(self.other)} {divisor}"
        return None


class NewDirectory(NamedTuple):
    """A directory that exists or can be created; or a file in one."""

    or_file: bool = False

    def check(self, value):
        """Returns what is wrong with a value, or None."""
        path = Path(value)
        if is_url(value):
            return "expected a local directory: nothing is written to URLs"
        if not value or "\0" in value or path.name in ("", ".."):
            return "expected the name of a directory, as in runs/NAME"
        try:
            for part in [path, *path.parents][self.or_file :]:
                if part.exists() and not part.is_dir():
                    return f"{part} is a file, and must be a directory"
        except OSError as error:
            return error.strerror
        return None


class KnownNetwork:
    """The name of a network of keras.applications, without importing it."""

    def check(self, value):
        """Returns what is wrong with a value, or None."""
        if value in _networks():
            return None
        return (
            "expected the name of a network of keras.applications, such as "
            "EfficientNetB0"
        )


@functools.cache
def _networks():
    keras = Path(importlib.util.find_spec("keras").origin).parent
    text = (keras / "applications" / "__init__.py").read_text("utf-8")
    return re.findall(r"\b([A-Z]\w+) as \1\b", text)


class NotPrepared:
    """A file, and not the folder that `kseq prepare` makes of it."""

    def check(self, value):
        """Returns what is wrong with a value, or None."""
        if is_prepared(value):
            return (
                "prepared data do not contain the training texts, which this "
                "recipe needs: give the file"
            )
        return None


_SMALLEST_FLOAT = math.ulp(0.0)
_HUGE = 1e300

PositiveInt = Annotated[
    int, Limits(1, _LARGEST, f"an integer of at least 1 and at most {_LARGEST}")
]
NonNegativeInt = Annotated[
    int, Limits(0, _LARGEST, f"an integer of at least 0 and at most {_LARGEST}")
]
# Of a row of text: each token but the last is before another.
RowLength = Annotated[
    int, Limits(2, _LARGEST, f"an integer of at least 2 and at most {_LARGEST}")
]
# Of a layer. A typo would exhaust memory only after minutes.
Size = Annotated[int, Limits(1, 65_536, "an integer from 1 to 65536")]
EvenSize = Annotated[Size, Even()]
# SentencePiece would try larger ones for minutes.
VocabSize = Annotated[int, Limits(1, 1_000_000, "an integer from 1 to 1000000")]
# Of a memory: a shift by one to each side must not wrap around.
Slots = Annotated[int, Limits(3, 65_536, "an integer from 3 to 65536")]
# Of layers, heads, answers in a beam, checkpoints.
SmallInt = Annotated[int, Limits(1, 1000, "an integer from 1 to 1000")]
# The same, or 0 for what another option says.
SmallIntOrZero = Annotated[int, Limits(0, 1000, "an integer from 0 to 1000")]
# Of answers that are compared with each other.
SampleCount = Annotated[int, Limits(2, 1000, "an integer from 2 to 1000")]
# Of which features of recordings are computed.
MelBands = Annotated[int, Limits(1, 256, "an integer from 1 to 256")]
SAMPLE_RATES = Limits(100, 192_000, "100 to 192000 samples per second")
SampleRate = Annotated[int, SAMPLE_RATES]
Seconds = Annotated[float, Limits(0.01, 36_000, "a number from 0.01 to 36000")]
# Each piece more is another n-gram at every place of a document.
Ngrams = Annotated[int, Limits(0, 10, "an integer from 0 to 10")]
Port = Annotated[int, Limits(0, 65_535, "an integer from 0 to 65535")]
PositiveFloat = Annotated[
    float, Limits(_SMALLEST_FLOAT, _HUGE, "a positive number")
]
NonNegativeFloat = Annotated[
    float, Limits(0.0, _HUGE, "a number of at least 0")
]
# Of dropout, label smoothing and moving averages.
Rate = Annotated[float, Limits(0.0, BELOW_ONE, "a number from 0 to below 1")]
# Of normalization: without it a variance of 0 gives nan.
Epsilon = Annotated[float, Limits(1e-12, 1.0, "a number from 1e-12 to 1")]
Share = Annotated[float, Limits(0.0, 1.0, "a number from 0 to 1")]
RunPath = Annotated[str, NewDirectory()]
Network = Annotated[str, KnownNetwork()]
DataFile = Annotated[str, NotPrepared()]
# Of an export; what may not exist is refused when it is written.
NewPath = Annotated[str, NewDirectory(or_file=True)]
# One type for a vocabulary of both sides, or those of source and target.
Pieces = Literal["bpe", "unigram", "char", "word"]
# The first one chooses the best weights.
Metric = Literal[
    *("bleu", "chrf", "exact_match", "cer", "wer", "ter"),
    *("rouge_1", "rouge_2", "rouge_l", "distinct_1", "distinct_2"),
    *("rouge_1_stem", "rouge_2_stem", "rouge_l_stem"),
    # With other tokenizers than 13a; with words beside characters.
    *("bleu_char", "bleu_intl", "bleu_zh", "bleu_ja", "bleu_ko"),
    *("chrf_plus_plus", "comet"),
]
Positions = Literal["sinusoidal", "learned", "rotary", "relative", "none"]
# Of them auto is replaced when a run starts: see `kseq.runs.RunDirectory`.
DType = Literal["auto", "float32", "mixed_bfloat16", "mixed_float16"]
