"""kseq plan: what a training will cost, measured in a short one."""

import itertools
import math
import resource
import sys
import time

from kseq.commands.lr_find import lr_find
from kseq.commands.train import run_page
from kseq.commands.trial_run import trial_run
from kseq.files.json_files import read_json
from kseq.files.recorded_metrics import is_validation
from kseq.files.training_process import failure
from kseq.terminal import escaped_line, progress
from kseq.user_error import UserError

_WINDOW = 50  # steps that a row of metrics is about
_STEPS = 2 * _WINDOW  # the first window has the compilation in it
_MINUTE, _HOUR = 60, 3600
_GB = 1e9


def run(options):
    """Forecasts the time and the memory of a training.

    100 steps are trained in a process of its own, validated, exported and
    tested, as the recipe does with its steps; nothing is kept of them. With
    --lr-find it looks for a learning rate instead, in the same way.
    """
    if options.recipe is None:
        raise UserError("kseq plan needs a recipe: `kseq recipes` lists them.")
    if any(word.startswith("--lr-find") for word in options.words):
        raise UserError("--lr-find FILE must come before the recipe's name.")
    run_page(
        options, "kseq plan", instead=lambda config: _plan(options, config)
    )


def _plan(options, config):
    missing = [
        name
        for name in ("steps", "evaluate_every")
        if not hasattr(config, name)
    ]
    if missing:
        raise UserError(
            f"{options.recipe} cannot be planned: its Config has no "
            f"{' and no '.join(missing)}."
        )
    words = ["train", options.recipe, *options.words]
    if getattr(config, "pretraining_steps", 0):
        words += ["--pretraining-steps", "0"]
    if options.lr_find:
        lr_find(words, config, options.lr_find)
        return
    if config.steps <= _STEPS:
        raise UserError(
            f"--steps {config.steps}: a plan itself trains {_STEPS} steps: "
            "start the training instead."
        )
    words += ["--steps", str(_STEPS), "--evaluate-every", str(_STEPS)]
    with progress(f"Training {_STEPS} steps, and all that comes after them"):
        measured = _measure(words)
    _report(config, measured)


def _measure(words):
    """Seconds of the parts of a short training, its memory and its device."""
    arrivals = [time.monotonic()]
    with trial_run(words) as trial:
        for has_come in (
            lambda rows: any(row["step"] >= _WINDOW for row in rows),
            lambda rows: any(row["step"] >= _STEPS for row in rows),
            lambda rows: any(map(is_validation, rows)),
        ):
            rows = trial.wait_for(has_come)
            if rows is None:
                break
            arrivals.append(time.monotonic())
        rows = trial.wait_for()
        arrivals.append(time.monotonic())
        if trial.code:
            raise failure(trial)
        device = _device(trial.metrics.with_name("environment.json"))
    if len(arrivals) < 4:
        raise UserError(
            f"the trial run wrote no metrics of {_STEPS} steps to "
            "metrics.jsonl; `kseq.training.fit` writes them."
        )
    trained = [row for row in rows if "loss" in row]
    first, second, *validated, ended = (
        arrival - before for before, arrival in itertools.pairwise(arrivals)
    )
    return {
        "start": max(first - second, 0.0),
        "step": second / _WINDOW,
        "validation": sum(validated),
        "end": ended,
        "speed": trained[-1].get("tokens_per_second"),
        "memory": _peak_memory(),
        "gpu_memory": max(row.get("gpu_memory", 0) for row in rows) * _GB,
        "device": device,
    }


def _device(path):
    """What `environment.json` says of the device; "" where there is none."""
    environment = read_json(path) if path.is_file() else {}
    return escaped_line(environment.get("device", ""))


def _peak_memory():
    """Bytes of the largest process that this one has waited for."""
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    return peak * (1 if sys.platform == "darwin" else 1024)


def _report(config, measured):
    steps = config.steps + getattr(config, "pretraining_steps", 0)
    training = steps * measured["step"]
    validations = math.ceil(config.steps / config.evaluate_every)
    validation = _duration(measured["validation"])
    validating = validations * measured["validation"]
    total = measured["start"] + training + validating + measured["end"]
    patience = getattr(config, "patience", 0)
    ends_early = f", less if --patience {patience} ends it" if patience else ""
    for name, seconds, comment in (
        ("start", measured["start"], "reading the data, compiling the step"),
        (
            *("training", training),
            f"{steps:,} steps of {measured['step']:.3g} s{_speed(measured)}",
        ),
        ("validation", validating, f"{validations:,} times {validation}"),
        ("end", measured["end"], "export and test"),
        ("total", total, f"at most{ends_early}"),
    ):
        print(f"{name:<12}{_duration(seconds):>12}   {comment}")
    for name, peak, comment in (
        ("memory", measured["memory"], "of the process, at its peak"),
        (
            *("GPU memory", measured["gpu_memory"]),
            "at the peak of training and validation",
        ),
    ):
        if peak:
            print(f"{name:<12}{f'{peak / _GB:.1f} GB':>12}   {comment}")
    if measured["device"]:
        print(f"{'device':<27}{measured['device']}")
    for line in _documented():
        print(escaped_line(line))


def _speed(measured):
    speed = measured["speed"]
    return f", {speed:,.0f} tokens per second" if speed else ""


def _duration(seconds):
    """Text, such as "12 s", "31 min" or "2.5 h".

    Example:
        >>> [_duration(seconds) for seconds in (0.2, 89, 91, 9000)]
        ['0.2 s', '89 s', '1.5 min', '2.5 h']
    """
    if seconds < 1.5 * _MINUTE:
        return f"{seconds:.2g} s"
    if seconds < 1.5 * _HOUR:
        return f"{seconds / _MINUTE:.2g} min"
    return f"{seconds / _HOUR:,.1f} h"


def _documented():
    """Lines of the recipe's docstring on what it has reached."""
    page = sys.modules["__main__"].__doc__ or ""
    lines = page.strip().split("\n")
    commands = [i for i, line in enumerate(lines) if "kseq train " in line]
    return lines[commands[-1] + 1 :] if commands else []
