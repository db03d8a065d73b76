"""The parts of a run, checked against each other."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import keras

from kseq.data import Tokenizer
from kseq.files.regular_file import read_regular
from kseq.runs import RunDirectory, RunError
from kseq.runs.calibration import read_temperature
from kseq.serving.object_config import preprocessor_from_config

if TYPE_CHECKING:  # most runs have no search
    from kseq.decoding import Search


class OpenedRun:
    """The parts of a run, of which `AnswerType.serve` makes what is served.

    Args:
        run: `RunDirectory`.
        task: dict, what its `task.json` says.
        has_tokenizer: bool, whether its source has a tokenizer.
        load_model: function, gives the model with its weights, and the path
            of their checkpoint.
        search: how answers are found; None where that needs no search.

    Attributes:
        checkpoint: str, the path of that of the weights, after `model`.
        preprocessor: of the source.
        task_path: of `task.json`, for messages.

    Raises:
        RunError: where the task or the tokenizer is broken.
    """

    def __init__(
        self,
        run: RunDirectory,
        task: dict[str, Any],
        has_tokenizer: bool,
        *,
        load_model: Callable[[], tuple[keras.Model, str]],
        search: "Search | None",
    ):
        self.run = run
        self.task = task
        self.search = search
        self.task_path = task_path(run)
        self._load_model = load_model
        self.checkpoint = ""
        self._sources = [self.tokenizer("source")] if has_tokenizer else []
        config = task.get("preprocessor")
        self.preprocessor = self.made(
            run.task, preprocessor_from_config, config, *self._sources
        )
        if getattr(self.preprocessor, "network", None) is not None:
            self.preprocessor.network.load(run.path / "network.npz")

    @property
    def temperature(self) -> float:
        """By which logits are divided before a softmax, after `model`."""
        return read_temperature(self.run, self.checkpoint)

    def model(self, needed: str, vocab_size: str = "") -> keras.Model:
        """The model.

        Args:
            needed: str, an attribute that it must have.
            vocab_size: str, the attribute with the vocabulary of the source.
        """
        model, self.checkpoint = self._load_model()
        if not hasattr(model, needed):
            raise RunError(
                f"{self.task_path} does not fit {self.run.model}: "
                f"{type(model).__name__} has no {needed}."
            )
        for tokenizer in self._sources:
            self.check_vocabulary(model, "source", tokenizer, vocab_size)
        return model

    def tokenizer(self, name: str) -> Tokenizer:
        """The tokenizer of "source" or "target"."""
        path = self.run.tokenizer(name)
        if path.is_file() and not path.stat().st_size:
            raise RunError(f"{path} is empty.")
        return Tokenizer.load(path)

    def answers(self, count: int) -> list[str]:
        """The lines of `answers.txt`; RunError unless it has `count`."""
        path = self.run.answers
        try:
            text = read_regular(path).decode("utf-8")
        except OSError as error:
            raise RunError(
                f"{path} cannot be read: {error.strerror}."
            ) from None
        except UnicodeDecodeError as error:
            raise RunError(f"{path} is broken: {error}") from None
        *answers, rest = text.split("\n")
        if rest or len(answers) != count:
            raise RunError(
                f"{path} is broken: it has {len(answers)} lines, but "
                f"{self.run.task} says answers={count}."
            )
        return answers

    @staticmethod
    def made(
        path: Path,
        function: Callable[..., Any],
        *arguments: Any,
        **options: Any,
    ) -> Any:
        """Calls a function with what a file says; its errors name the file."""
        try:
            return function(*arguments, **options)
        except (ValueError, TypeError) as error:
            raise RunError(f"{path} does not fit: {error}") from error

    def check_vocabulary(
        self,
        model: keras.Model,
        name: str,
        tokenizer: Tokenizer,
        attribute: str,
    ) -> None:
        """RunError unless a tokenizer has the size that a model expects."""
        size = getattr(model, attribute, tokenizer.vocab_size)
        if size != tokenizer.vocab_size:
            raise RunError(
                f"{self.run.tokenizer(name)} has {tokenizer.vocab_size} "
                f"pieces, but the model in {self.run.model} has "
                f"{attribute}={size}: they do not belong together."
            )

    def check_features(self, model: keras.Model) -> None:
        """RunError unless the preprocessor gives the features of a model."""
        expected = getattr(model, "source_dim", None)
        found = getattr(self.preprocessor, "num_features", None)
        if expected != found:
            raise RunError(
                f"{self.task_path} has num_features={found}, but the model in "
                f"{self.run.model} has source_dim={expected}: they do not "
                "belong together."
            )


def task_path(run: RunDirectory) -> Path:
    """For messages; version 0.1 had several files instead."""
    return run.task if run.task.is_file() else run.path
