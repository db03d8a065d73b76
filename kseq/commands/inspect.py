"""kseq inspect: what a run or an export is."""

import tensorflow as tf

from kseq.data import Tokenizer
from kseq.files.json_files import read_json
from kseq.files.model_path import is_run
from kseq.loading.load_export import read_meta_graph
from kseq.loading.load_run import load_model
from kseq.runs import RunDirectory
from kseq.runs.checkpoint_files import (
    checkpoint_paths,
    read_newest,
    step_of,
)
from kseq.serving.safe_graph import op_names, other_ops
from kseq.terminal import single_line
from kseq.user_error import UserError


def run(options):
    """Prints the facts, one per line."""
    if is_run(options.path):
        facts = _facts_of_run(RunDirectory(options.path))
    else:
        facts = _facts_of_export(options.path)
    for name, fact in facts:
        print(f"{name.rstrip('_'):<20} {single_line(_shown(fact))}")


def _shown(fact):
    """A value of a JSON file as one would say it."""
    if isinstance(fact, dict):
        named = dict(fact)
        kind = named.pop("class", "")
        values = ", ".join(f"{key}={_shown(named[key])}" for key in named)
        return f"{kind}({values})" if kind else values
    if isinstance(fact, list):
        return ", ".join(map(repr, fact)) or "none"
    return "none" if fact is None else str(fact)


def _facts_of_run(run):
    yield "run", run.path
    yield "model", run.read_model()["class_name"]
    for name in ("average", "best", "top", "last"):
        if paths := checkpoint_paths(run.checkpoints / name):
            steps = ", ".join(str(step_of(path)) for path in paths)
            yield f"{name} after steps", steps
    best = read_newest(run.checkpoints / "best", "value")
    if best and "value" in best[1]:  # not of a converted model
        yield "best score", f"{float(best[1]['value']):.4g}"
    if checkpoint_paths(run.checkpoints / "last"):
        try:
            yield "parameters", f"{load_model(run).count_params():,}"
        except UserError as error:  # and the rest may explain it
            yield "broken", error
    for name in ("source", "target"):
        if (path := run.tokenizer(name)).is_file():
            yield f"{name} vocabulary", f"{Tokenizer.load(path).vocab_size:,}"
    yield from run.read_task().items()
    if run.calibration.is_file():
        yield from read_json(run.calibration).items()
    # Both have the seed.
    yield from (read_json(run.config) | read_json(run.environment)).items()


def _facts_of_export(path):
    meta_graph = read_meta_graph(path)
    yield "export", path
    description = path / "assets.extra" / "kseq.json"
    if description.is_file():
        facts = read_json(description)
        if isinstance(count := facts.get("parameters"), int):
            facts["parameters"] = f"{count:,}"
        yield from facts.items()
    for name, signature in sorted(meta_graph.signature_def.items()):
        if not name.startswith("__"):
            inputs, outputs = signature.inputs, signature.outputs
            yield name, f"{_tensors(inputs)} -> {_tensors(outputs)}"
    yield "ops", ", ".join(sorted(op_names(meta_graph)))
    if found := other_ops(meta_graph):
        yield "ops of no export", ", ".join(found)


def _tensors(tensors):
    return ", ".join(
        f"{name} {tf.dtypes.as_dtype(info.dtype).name}"
        f"{tf.TensorShape(info.tensor_shape)}"
        for name, info in sorted(tensors.items())
    )
