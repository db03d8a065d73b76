"""Opens the run or the export of a command."""

import dataclasses

from kseq.command_line.search_options import given_search
from kseq.files.model_path import is_run
from kseq.loading import load
from kseq.loading.load_export import read_meta_graph
from kseq.user_error import UserError

# What an export that draws its answers cannot change.
_FIXED = ("top_k", "length_penalty", "ctc_weight")


def open_predictor(options):
    """Opens the run or the export at `options.path`.

    Args:
        options: of the command, with those of `_add_search` that it has;
            `ensemble` has the paths of more runs.

    Returns:
        What `kseq.load` returns.
    """
    search = chosen_search(options)
    draws = draws_of_export(options)
    predictor = load(
        options.path,
        *(getattr(options, "ensemble", None) or ()),
        weights=getattr(options, "weights", None),
        search=None if draws else search,
        allow_ops=getattr(options, "allow_op", ()),
    )
    if draws:
        predictor.sampling = search
    predictor.batch_size = getattr(options, "batch_size", None)
    return predictor


def draws_of_export(options):
    """Whether the options ask an export to draw its answers, and it can."""
    given = [getattr(options, name, None) for name in _FIXED]
    return (
        not is_run(options.path)
        and bool(getattr(options, "sample", None))
        and all(value is None for value in given)
        and "sample" in read_meta_graph(options.path).signature_def
    )


def chosen_search(options):
    """The search that the options ask for; None for that of the model.

    Raises:
        UserError: if the options have values that the search does not admit.
    """
    given = given_search(options)
    candidates = getattr(options, "mbr", None)
    if not given and not (candidates and is_run(options.path)):
        return None
    from kseq.decoding import BeamSearch, GreedySearch, Sampling

    searches = {"greedy": GreedySearch, "sample": Sampling}
    kind = next((searches[name] for name in searches if name in given), None)
    chosen = {
        name: value for name, value in given.items() if name not in searches
    }
    if candidates and "sample" in given:
        chosen["num_samples"] = candidates
    try:
        if kind or not is_run(options.path):
            return (kind or BeamSearch)(**chosen)
        from kseq.loading.load_run import search_of_run  # imports all models

        default = search_of_run(options.path)
        if not isinstance(default, BeamSearch):
            default = BeamSearch()
        if candidates and "beam_size" not in chosen:
            chosen["beam_size"] = max(candidates, default.beam_size)
        return dataclasses.replace(default, **chosen)
    except ValueError as error:
        raise UserError(str(error)) from error
