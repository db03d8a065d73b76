"""What a run or an export can do, read before it is loaded."""

from typing import Any, NamedTuple

from kseq.commands.open_predictor import chosen_search
from kseq.model_path import is_run
from kseq.runs import RunDirectory
from kseq.runs.run_directory import read_json
from kseq.serving.generator_predictor import SOURCES
from kseq.serving.load_export import read_meta_graph
from kseq.serving.object_config import input_name, search_from_config
from kseq.user_error import UserError


class Abilities(NamedTuple):
    """What a run or an export can do.

    Args:
        path: `pathlib.Path` of the run or of the version.
        has_labels: bool, whether it answers with a label, not with a text.
        source: str, what it takes, see `GeneratorPredictor`.
        signatures: set of str, the signatures of an export; None for a run.
        description: dict, `task.json` of a run, `kseq.json` of an export;
            empty where an export has none.
    """

    path: Any
    has_labels: bool
    source: str
    signatures: set[str] | None
    description: dict[str, Any]

    def check_signature(self, name, what):
        """UserError if an export does not have a signature.

        Args:
            name: of the signature.
            what: str, the command or the option that needs it.
        """
        if self.signatures is not None and name not in self.signatures:
            raise UserError(
                f"{what} needs a signature {name}; the export {self.path} has "
                f"{', '.join(sorted(self.signatures))}."
            )

    @property
    def labels(self):
        """The labels of a classifier, a list; None where they are not known."""
        labels = self.description.get("labels")
        return labels if isinstance(labels, list) else None

    def most_answers(self, options):
        """The largest `n_best`; None where it is not known.

        Args:
            options: of the command, see `open_predictor`.
        """
        if self.has_labels:
            return self.labels and len(self.labels)
        search = chosen_search(options) or self._own_search()
        return search and search.most_answers

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
        return Abilities(path, "labels" in task, source, None, task)
    signatures = read_meta_graph(path).signature_def
    names = {name for name in signatures if not name.startswith("__")}
    served = signatures["serving_default"]
    source = next(
        (name for name in SOURCES if name in served.inputs),
        "text",
    )
    return Abilities(
        path, "label" in served.outputs, source, names, _description(path)
    )


def _description(path):
    try:
        description = read_json(path / "assets.extra" / "kseq.json")
    except (OSError, UserError):
        return {}  # it is for people; the graph is what counts
    return description if isinstance(description, dict) else {}
