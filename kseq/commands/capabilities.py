"""What a run or an export can do, read before it is loaded."""

import functools

from kseq.answers import TEXT, types_of_export, types_of_task
from kseq.commands.open_predictor import chosen_search
from kseq.files.json_files import read_json
from kseq.files.model_path import is_run
from kseq.loading.load_export import read_meta_graph
from kseq.runs import RunDirectory
from kseq.serving.object_config import (
    preprocessor_from_config,
    search_from_config,
)
from kseq.sources import source_named
from kseq.user_error import UserError

_ALL = 2**31 - 1  # of the classes of a model, the largest valid number


class Capabilities:
    """What a run or an export can do, read before it is loaded.

    Args:
        path: `pathlib.Path` of the run or of the version.

    Attributes:
        path: the same.
        task: dict, `task.json` of a run, `kseq.json` of an export; empty
            where an export has none.
        source: `kseq.sources.SourceType`, what it takes.
        answer: `kseq.answers.AnswerType`, what it answers with.

    Raises:
        UserError: where its files are broken.
    """

    def __init__(self, path):
        self.path = path
        if is_run(path):
            task = RunDirectory(path).read_task()
            self.task = task if isinstance(task, dict) else {}
            self.source, self.answer = types_of_task(self.task)
            self._signatures = None
            return
        signatures = read_meta_graph(path).signature_def
        self._signatures = {n for n in signatures if not n.startswith("__")}
        self.task = _description(path)
        # What is wrong with any other export is said where it is loaded.
        types = types_of_export(signatures) or (source_named("text"), TEXT)
        self.source, self.answer = types

    @property
    def signatures(self):
        """Names of its signatures, as far as they are known."""
        if self._signatures is None:
            return {*self.answer.signatures(self.source)}
        return self._signatures

    @functools.cached_property
    def preprocessor(self):
        """That of its source, without a tokenizer."""
        tokenizers = [None] if self.source.has_tokenizer else []
        config = self.task.get("preprocessor")
        return preprocessor_from_config(config, *tokenizers)

    def check_signature(self, name, what):
        """UserError if it does not have a signature.

        Args:
            name: of the signature.
            what: str, the command or the option that needs it.
        """
        if name in self.signatures:
            return
        if name in self.answer.refusals:
            raise UserError(self.answer.refusals[name])
        raise UserError(
            f"{what} needs a signature {name}; {self.path} has "
            f"{', '.join(sorted(self.signatures))}."
        )

    def check_options(self, options):
        """UserError for an option about inputs that it does not take.

        Args:
            options: of a command that reads lines.
        """
        for name, takers in _TAKERS.items():
            given = getattr(options, name, None)
            if given and name not in self.source.options:
                raise UserError(
                    f"--{name} is for a model {takers}; {self.path} takes "
                    f"{self.source.lines}."
                )

    @property
    def num_classes(self):
        """The classes whose probabilities an answer has; 0 if not known."""
        classes = self.answer.ranks_classes and self.task.get(
            self.answer.classes
        )
        return len(classes) if isinstance(classes, list) else 0

    def n_best(self, options):
        """The number of answers requested for each input.

        Args:
            options: of the command, see `open_predictor`.

        Raises:
            UserError: if it cannot give that many, as far as is known.
        """
        candidates = options.mbr or options.n_best
        if candidates == 1:
            # The scores of classes are those of all of them.
            are_all = self.answer.ranks_classes and options.scores
            return _ALL if are_all else 1
        if self.answer.most_answers:
            most, limit = self.answer.most_answers(self.task)
        else:
            search = chosen_search(options) or self._own_search()
            most = search and search.most_answers
            limit = (
                f"needs a beam of at least that size; this search gives {most}."
            )
        option = "--mbr" if options.mbr else "--n-best"
        if most is not None and candidates > most:
            raise UserError(f"{option} {candidates} {limit}")
        if not self.answer.ranks_classes and not options.prefix:
            self.check_signature("n_best", option)
        return candidates

    def _own_search(self):
        try:
            return search_from_config(self.task.get("search"))
        except UserError:
            return None  # has a user's own constraint, or is not described


# Options of several commands, and the models that they are for.
_TAKERS = {
    "features": "that takes features",
    "resample": "of recordings",
}


def _description(path):
    try:
        description = read_json(path / "assets.extra" / "kseq.json")
    except (OSError, UserError):
        return {}  # it is for people; the graph is what counts
    return description if isinstance(description, dict) else {}
