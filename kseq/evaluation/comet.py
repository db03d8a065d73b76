"""COMET, a learned metric of translations, by its own program."""

import functools
import json
import math
import os
import subprocess
import tempfile
from pathlib import Path

from kseq.evaluation.score import Score, check_lengths, listed
from kseq.files.optional_packages import COMET_PROGRAM, check_metrics
from kseq.terminal import escaped_line
from kseq.user_error import UserError

_MODEL = "COMET_MODEL"  # environment variable
_DEFAULT = "Unbabel/wmt22-comet-da"


class Comet:
    """COMET of translations, whose source texts it reads as well.

    The program `comet-score` of the package unbabel-comet computes it in a
    process of its own: it needs PyTorch, and packages in other versions than
    TensorFlow, so that it belongs in another environment (`pipx install
    unbabel-comet`). Its model is Unbabel/wmt22-comet-da unless the environment
    variable COMET_MODEL names a different one, or a file.

    Of several references the first one counts. A line break in a text becomes
    a space.

    Args:
        sources: list of str; None as long as they are not known, see
            `with_sources`.

    Reference:
        Rei et al. 2020, arXiv:2009.09025; Rei et al. 2022,
        aclanthology.org/2022.wmt-1.52.
    """

    __name__ = "comet"
    label = "COMET"

    def __init__(self, sources=None):
        self._sources = sources

    @property
    def signature(self):
        """The model, and what is done with several references."""
        return f"refs:first|model:{escaped_line(_model())}"

    def __call__(self, outputs, references):
        """The mean over all outputs, as a metric.

        Args:
            outputs: list of str.
            references: list of str, or of lists of several.

        Returns:
            Score, about 0 to 100.

        Raises:
            ValueError: if the lists are empty or differ in length.
            UserError: if the program is missing or fails.
        """
        values = self.of_lines(outputs, references)
        value = sum(values) / len(values)
        return Score(value, f"{self.label} {value:.2f}  {self.signature}")

    def of_lines(self, outputs, references):
        """The value of each output, a tuple of float; see `__call__`."""
        if self._sources is None:
            raise ValueError("Expected source texts. Received: Comet(None)")
        check_lengths(outputs, references)
        check_lengths(outputs, self._sources)
        first = [several[0] for several in listed(references)]
        columns = self._sources, outputs, first
        return _computed(_model(), *map(tuple, columns))


comet = Comet()


def with_sources(metrics, sources):
    """Metrics that know the source texts, if they are among what they read.

    Args:
        metrics: list of functions of outputs and references.
        sources: list of str; None if the sources are not texts.

    Returns:
        A list of functions of outputs and references.

    Raises:
        UserError: if one of them reads sources, and there are none.
    """
    if comet in metrics and sources is None:
        raise UserError(
            "comet reads source texts: it is for text-to-text models."
        )
    return [Comet(sources) if metric is comet else metric for metric in metrics]


def _model():
    return os.environ.get(_MODEL) or _DEFAULT


@functools.lru_cache(maxsize=2)  # for the score, and again for its interval
def _computed(model, sources, outputs, references):
    check_metrics(["comet"])
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder, name) for name in ("source", "output", "right")]
        for path, texts in zip(
            files, (sources, outputs, references), strict=True
        ):
            lines = [" ".join(text.split()) + "\n" for text in texts]
            path.write_text("".join(lines), "utf-8", "replace")
        result = Path(folder, "scores.json")
        command = [COMET_PROGRAM, "--model", model, "--to_json", result]
        for option, path in zip(("-s", "-t", "-r"), files, strict=True):
            command += [option, path]
        done = subprocess.run(
            [*command, "--quiet", "--only_system"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        try:
            [rows] = json.loads(result.read_bytes()).values()
            values = tuple(100 * float(row["COMET"]) for row in rows)
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            values = ()
    if len(values) != len(outputs) or not all(map(math.isfinite, values)):
        name = escaped_line(model)
        raise UserError(f"{COMET_PROGRAM} --model {name} failed: {_last(done)}")
    return values


def _last(done):
    """The last line that a program printed."""
    lines = done.stdout.decode("utf-8", "replace").split("\n")
    printed = [line.strip() for line in lines if line.strip()]
    last = printed[-1] if printed else f"exit code {done.returncode}"
    return escaped_line(last)
