"""Opens runs and exports."""

import os
import sys
from collections.abc import Collection
from typing import TYPE_CHECKING

from kseq.files.model_path import is_run, model_path, run_path
from kseq.process import start_tensorflow
from kseq.user_error import UserError

if TYPE_CHECKING:  # TensorFlow is imported after `start_tensorflow`
    from kseq.decoding import Search
    from kseq.loading.load_export import Predictor


def load(
    path: str | os.PathLike,
    *others: str | os.PathLike,
    weights: str | None = None,
    search: "Search | None" = None,
    allow_ops: Collection[str] = (),
) -> "Predictor":
    """Opens a run or an export, ready to answer lists of strings.

    Args:
        path: str or path: `runs/<name>`, `saved_models/<name>` for its newest
            version, `saved_models/<name>/<version>`, `hf://<owner>/<name>`
            for a model on the Hugging Face Hub, perhaps with `@<revision>`, or
            `builtin://<name>` for a built-in one, such as
            `builtin://dates`, which is trained when it is first loaded.
        *others: more runs, which form an ensemble with the first: their
            probabilities are averaged. All must generate text, all give
            labels, or all give tags, with the same tokenizers.
        weights: of a run: "average", "best" or "last"; by default the first of
            these that exists in the run.
        search: of a run: the search, for example
            `kseq.decoding.GreedySearch()`; by default that of the run.
        allow_ops: of an export: names of operations that it may have in
            addition to those of kseq's own exports. An operation can read and
            write files and run programs: use this only for exports that you
            trust.

    Returns:
        A `GeneratorPredictor` or a `ClassifierPredictor`: a callable, lists
        of str to lists of str; a `TaggerPredictor`, to lists of lists of str;
        or a `TransducerPredictor`, lists of arrays to lists of arrays. For a
        run it has the Keras `model`.

    Raises:
        UserError: if there is no such model, or `weights` or `search`
            is given for an export or `allow_ops` for a run, the export may
            not be loaded, or the runs cannot be an ensemble.

    Example:
        >>> translator = kseq.load("saved_models/dates")  # doctest: +SKIP
        >>> translator(["3 mars 1999"])  # doctest: +SKIP
        ['1999-03-03']
    """
    path = model_path(path)
    if is_run(path) and allow_ops:
        raise UserError(
            f"Operations can be allowed for exports; {path} is a run "
            "directory, which needs no --allow-op."
        )
    if not is_run(path):
        for name, value in (("weights", weights), ("search", search)):
            if value is not None:
                raise UserError(
                    f"{name} can be chosen for run directories; {path} is an "
                    "export, where it is fixed."
                )
        if others:
            raise UserError(
                f"An ensemble needs run directories; {path} is an export."
            )
    runs = [path, *map(run_path, others)]
    if len({os.path.realpath(run) for run in runs}) < len(runs):
        raise UserError("An ensemble needs different runs; one is given twice.")
    if "tensorflow" not in sys.modules:
        start_tensorflow()
    from kseq.devices import check_not_forked  # imports TensorFlow

    check_not_forked()
    if is_run(path):
        from kseq.loading.load_run import load_run  # imports all model code
        from kseq.serving import ensemble

        served = {
            str(run): load_run(run, weights=weights, search=search)
            for run in runs
        }
        if others:
            return ensemble(served).predictor()
        return served[str(path)].predictor()
    from kseq.loading.load_export import load_export

    return load_export(path, allow_ops=allow_ops)
