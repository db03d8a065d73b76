"""Opens the run or the export of a command."""

import dataclasses

from kseq.files.model_path import is_run
from kseq.loading import load
from kseq.loading.load_export import read_meta_graph
from kseq.user_error import UserError


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


def given_search(options):
    """The options of a search that are given, dict of field -> value."""
    return {
        name: value
        for name, value in vars(options).items()
        if name in _FIELDS and value is not None and value is not False
    }


def option_of(name):
    """The option of a field, such as --groups of num_groups."""
    return f"--{name.removeprefix('num_').replace('_', '-')}"


def chosen_search(options):
    """The search that the options ask for; None for that of the model.

    Raises:
        UserError: if the options contradict each other, or have values that
            the search does not admit.
    """
    given = given_search(options)
    candidates = getattr(options, "mbr", None)
    if not given and not (candidates and is_run(options.path)):
        return None
    from kseq.decoding import BeamSearch, GreedySearch, Sampling

    kinds = [name for name in ("greedy", "sample") if name in given]
    if len(kinds) > 1:
        raise UserError("--greedy and --sample are mutually exclusive.")
    searches = {"greedy": GreedySearch, "sample": Sampling}
    kind = searches[kinds[0]] if kinds else BeamSearch
    fields = {field.name for field in dataclasses.fields(kind)}
    for name in given.keys() - fields - {"greedy", "sample"}:
        hint = " needs --sample" if name in _OF_SAMPLING else " is for a beam"
        raise UserError(f"{option_of(name)}{hint}.")
    if "diversity" in given and given.get("num_groups", 1) == 1:
        raise UserError("--diversity needs --groups of two or more.")
    chosen = {name: value for name, value in given.items() if name in fields}
    if candidates and "sample" in given:
        chosen["num_samples"] = candidates
    try:
        if kinds or not is_run(options.path):
            return kind(**chosen)
        from kseq.loading.load_run import search_of_run  # imports all models

        default = search_of_run(options.path)
        if not isinstance(default, BeamSearch):
            default = BeamSearch()
        if candidates and "beam_size" not in chosen:
            chosen["beam_size"] = max(candidates, default.beam_size)
        return dataclasses.replace(default, **chosen)
    except ValueError as error:
        raise UserError(str(error)) from error


_OF_SAMPLING = ("temperature", "top_k", "top_p", "seed")
OF_BEAM = (
    *("beam_size", "patience", "coverage_penalty", "num_groups", "diversity"),
)
_OF_ALL = ("length_penalty", "ctc_weight")
# What an export that draws its answers cannot change.
_FIXED = ("top_k", *_OF_ALL)
_FIELDS = ("greedy", "sample", *_OF_SAMPLING, *OF_BEAM, *_OF_ALL)
