"""kseq verify: whether a run can be repeated."""

from kseq.command_line.option_types import option
from kseq.commands.recipes import find_recipe
from kseq.commands.trial_run import trial_run, without
from kseq.files.json_files import read_json
from kseq.files.recorded_metrics import recorded_metrics
from kseq.runs import RunDirectory
from kseq.runs.changes import changes
from kseq.runs.data_files import data_files
from kseq.runs.run_directory import environment_of
from kseq.terminal import escaped_line, progress
from kseq.user_error import UserError

# Of a row of metrics, what depends on the speed and the memory of the machine.
_OF_MACHINE = ("tokens_per_second", "waiting_for_data", "gpu_memory")


def run(options):
    """Compares versions, data and the numbers of the first steps.

    Raises:
        SystemExit: with code 1 if they are not all the same.
    """
    run = RunDirectory(options.path)
    rows = _steps_of(recorded_metrics(run.metrics))
    steps = _steps(run, rows, options.steps)
    words = _words(run)
    versions = _changed_versions(run)
    data = _changed_data(run)
    _report("versions", versions)
    _report("data", data)
    if any("missing" in line for line in data):
        raise UserError(
            "without its data a run cannot be replayed. Start kseq verify in "
            "the folder in which the run was started."
        )
    words = _where_data_are(run, words)
    different = _compared(rows, _replayed(words, steps), steps)
    _report(f"steps 1 to {steps}", different, agree="the same bits")
    if versions or data or different:
        raise SystemExit(1)


def _report(name, changes, agree="the same"):
    print(f"{name:<20} {'different' if changes else agree}", flush=True)
    for line in changes:
        print(f"  {escaped_line(line)}", flush=True)


def _steps_of(rows):
    """dict, step -> the metrics of training that were recorded.

    Those of an epoch that was resumed are other sums than in a replay.
    """
    return {
        row["step"]: row
        for row in rows
        if "loss" in row and "resumed" not in row
    }


def _steps(run, rows, wanted):
    """The last step to be compared."""
    recorded = sorted(rows)
    if not recorded:
        raise UserError(f"{run.metrics} has no steps to compare.")
    if wanted is None:
        return recorded[0]
    fit = [step for step in recorded if step <= wanted]
    if not fit:
        raise UserError(
            f"--steps {wanted}: the first recorded step is {recorded[0]}."
        )
    return fit[-1]


def _words(run):
    """The command of a run, without the program; only of a recipe of kseq."""
    command = None
    if run.command.is_file():
        command = read_json(run.command).get("command")
    if not isinstance(command, list) or command[:2] != ["kseq", "train"]:
        raise UserError(
            f"{run.path} cannot be replayed: its command was not recorded, or "
            "is not `kseq train`."
        )
    words = [str(word) for word in command[1:]]
    # A folder from a stranger must not run a program of theirs.
    if not words[1:] or "/" in words[1] or words[1].endswith(".py"):
        raise UserError(
            f"{run.path} was trained by a recipe of your own; only built-in "
            "recipes are replayed."
        )
    find_recipe(words[1])
    return words


def _changed_versions(run):
    before = read_json(run.environment)
    now = environment_of(before.get("seed"))
    return [line for _, line in changes(before, now, all_keys=True)]


def _changed_data(run):
    config = read_json(run.config)
    now = data_files(config)
    lines = []
    for name, before in _recorded_data(run).items():
        if name not in now:
            lines.append(f"{name}: missing: {_paths(config.get(name))}")
        elif now[name] != before:
            lines.append(f"{name}: changed: {_paths(config.get(name))}")
    return lines


def _where_data_are(run, words):
    """The command with the paths of a run that resumed with moved data."""
    config = read_json(run.config)
    for name in _recorded_data(run):
        value = config[name]
        paths = value if isinstance(value, list) else [value]
        if not {*paths} <= {*words}:
            words = [*without(words, option(name)), option(name), *paths]
    return words


def _recorded_data(run):
    return read_json(run.data) if run.data.is_file() else {}


def _paths(value):
    return ", ".join(value) if isinstance(value, list) else str(value)


def _replayed(words, steps):
    """dict, step -> metrics of a new run with the same command."""

    def has_come(rows):
        return max(_steps_of(rows), default=0) >= steps

    with progress(f"Replaying {steps} steps"), trial_run(words) as trial:
        rows = trial.wait_for(has_come)
        if rows is None:
            raise UserError(
                f"the replay ended before step {steps}: {trial.last_line()}"
            )
        return _steps_of(rows)


def _compared(before, now, steps):
    """Lines on the first step whose numbers differ."""
    for step in sorted(step for step in before if step <= steps):
        old, new = before[step], now.get(step, {})
        lines = [
            f"step {step}: {name}: {old.get(name)} -> {new.get(name)}"
            for name in sorted(old.keys() | new.keys())
            if name not in _OF_MACHINE and old.get(name) != new.get(name)
        ]
        if lines:
            return lines
    return []
