"""Abilities of a run or an export, read before it is loaded."""

import sys
from typing import Any, NamedTuple

from kseq.commands.open_predictor import chosen_search
from kseq.loading.load_export import read_meta_graph
from kseq.model_path import is_run
from kseq.runs import RunDirectory
from kseq.runs.run_directory import read_json
from kseq.runs.signature_texts import (
    OF_ANSWERS,
    OF_LABELS,
    OF_TAGS,
    OF_VECTORS,
)
from kseq.serving.generator_predictor import SOURCES
from kseq.serving.object_config import input_name, search_from_config
from kseq.serving.retriever import MOST_ANSWERS
from kseq.user_error import UserError

# What a model that answers with a label says of a signature that it has not.
_WITHOUT = {
    "score": "score is for models that generate text; for labels use predict "
    "--scores.",
    "prefix": "--prefix is for models that generate text; this one predicts "
    "labels.",
}


class Abilities(NamedTuple):
    """Abilities of a run or an export.

    Args:
        path: `pathlib.Path` of the run or of the version.
        has_labels: bool, whether it answers with a label, not with a text.
        has_tags: bool, whether it answers with a tag for each word.
        source: str, what it takes, see `GeneratorPredictor`.
        signatures: set of str; None for a run that writes its answers, whose
            model decides.
        description: dict, `task.json` of a run, `kseq.json` of an export;
            empty where an export has none.
    """

    path: Any
    has_labels: bool
    has_tags: bool
    source: str
    signatures: set[str] | None
    description: dict[str, Any]

    def check_signature(self, name, what):
        """UserError if it does not have a signature.

        Args:
            name: of the signature.
            what: str, the command or the option that needs it.
        """
        if self.signatures is None or name in self.signatures:
            return
        if self.has_labels and name in _WITHOUT:
            raise UserError(_WITHOUT[name])
        raise UserError(
            f"{what} needs a signature {name}; {self.path} has "
            f"{', '.join(sorted(self.signatures))}."
        )

    @property
    def labels(self):
        """The labels of a classifier, a list; None where they are not known."""
        return self._listed("labels")

    @property
    def tags(self):
        """The tags of a tagger, a list; None where they are not known."""
        return self._listed("tags")

    def _listed(self, name):
        found = self.description.get(name)
        return found if isinstance(found, list) else None

    @property
    def kind(self):
        """`source`, except where it answers with "labels" or "tags"."""
        if self.has_labels:
            return "labels"
        return "tags" if self.has_tags else self.source

    @property
    def retrieves(self):
        """Whether its answers are texts that it knows."""
        return type(self.description.get("answers")) is int

    @property
    def chats(self):
        """Whether it answers to what is said."""
        return self.kind in ("turns", "text")

    def n_best(self, options):
        """How many answers an input has.

        Args:
            options: of the command, see `open_predictor`.

        Raises:
            UserError: if it cannot give that many, as far as is known.
        """
        if options.n_best == 1:
            # The scores of a classifier are those of all labels.
            return sys.maxsize if self.has_labels and options.scores else 1
        if self.has_labels:
            most = self.labels and len(self.labels)
            limit = f"is more than the {most} labels of the model."
        elif self.retrieves:
            most = min(MOST_ANSWERS, self.description["answers"])
            limit = f"is more than the {most} answers that the model gives."
        else:
            search = chosen_search(options) or self._own_search()
            most = search and search.most_answers
            limit = (
                f"needs a beam of at least that size; this search gives {most}."
            )
        if most is not None and options.n_best > most:
            raise UserError(f"--n-best {options.n_best} {limit}")
        if not self.has_labels and not options.prefix:
            self.check_signature("n_best", "--n-best")
        return options.n_best

    def _own_search(self):
        try:
            return search_from_config(self.description.get("search"))
        except UserError:
            return None  # has a user's own constraint, or is not described


def abilities(path):
    """Reads what the run or the export at a path can do.

    Args:
        path: `pathlib.Path` of the run or of the version.

    Raises:
        UserError: where its files are broken.
    """
    if is_run(path):
        task = RunDirectory(path).read_task()
        task = task if isinstance(task, dict) else {}
        source = input_name(task.get("preprocessor"))
        names = {*OF_ANSWERS} if "answers" in task else None
        names = {*OF_LABELS} if "labels" in task else names
        names = {*OF_VECTORS} if source == "vectors" else names
        names = {*OF_TAGS} if "tags" in task else names
        return Abilities(
            path, "labels" in task, "tags" in task, source, names, task
        )
    signatures = read_meta_graph(path).signature_def
    names = {name for name in signatures if not name.startswith("__")}
    served = signatures["serving_default"]
    source = next(
        (n for n in (*SOURCES, "vectors") if n in served.inputs),
        "text",
    )
    return Abilities(
        path,
        "label" in served.outputs,
        "tags" in served.outputs,
        source,
        names,
        _description(path),
    )


def _description(path):
    try:
        description = read_json(path / "assets.extra" / "kseq.json")
    except (OSError, UserError):
        return {}  # it is for people; the graph is what counts
    return description if isinstance(description, dict) else {}
