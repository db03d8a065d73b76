"""The learning rate that a range test suggests."""

from kseq.commands.trial_run import trial_run, without
from kseq.files.atomic_write import atomic_write, unique_path
from kseq.files.training_process import failure
from kseq.terminal import progress
from kseq.user_error import UserError

STEPS = 200
_HIGHEST = 1.0  # from a hundred-thousandth of it, see `training.RangeTest`
_MOMENTUM = 0.9
_DIVERGED = 3  # the exit code of a training
_TOO_HIGH = 4.0  # times the least loss
_FALLS = 0.99  # of the first loss, or less
_LEAST_ROWS = 20  # before anything can be said


def lr_find(words, config, path):
    """Trains with a rate that grows, and prints the one to choose.

    It is a tenth of the rate at which the smoothed loss is least: beyond that
    one training diverges, and the peak of a schedule lasts.

    Args:
        words: the command of the training without the program, such as
            `["train", "translate_lstm"]`.
        config: of the recipe.
        path: `pathlib.Path` of the picture.

    Raises:
        UserError: if the recipe has no schedule to replace, or its training
            fails, or its loss falls at no rate.
    """
    if not hasattr(config, "schedule"):
        raise UserError("--lr-find: the Config of the recipe has no schedule.")
    words = [
        *without(words, "--warmup-steps"),  # a range test has none
        *("--steps", str(STEPS), "--evaluate-every", str(STEPS)),
        *("--schedule", "range_test", "--learning-rate", str(_HIGHEST)),
    ]
    with (
        progress(f"Training up to {STEPS} steps"),
        trial_run(words) as trial,
    ):
        rows = trial.wait_for(_is_over)
        if rows is None:
            rows = trial.wait_for()
            has_curve = len(_curve(rows)[1]) >= _LEAST_ROWS
            if trial.code and not (has_curve and trial.code == _DIVERGED):
                raise failure(trial)
            if not has_curve:
                raise UserError(
                    "the trial run wrote no metrics of its steps to "
                    "metrics.jsonl; `kseq.training.fit` writes them."
                )
    _report(*_curve(rows), config, path)


def _curve(rows):
    """The learning rates and the losses of the steps."""
    steps = [row for row in rows if "loss" in row]
    return [r["learning_rate"] for r in steps], [r["loss"] for r in steps]


def _is_over(rows):
    _, losses = _curve(rows)
    if len(losses) < _LEAST_ROWS:
        return False
    smoothed = smooth(losses)
    return len(losses) >= STEPS or smoothed[-1] > _TOO_HIGH * min(smoothed)


def smooth(losses):
    """The moving averages of losses, without the bias of their start.

    Example:
        >>> [round(value, 3) for value in smooth([2.0, 1.0])]
        [2.0, 1.474]
    """
    found, mean = [], 0.0
    for number, loss in enumerate(losses, 1):
        mean = _MOMENTUM * mean + (1 - _MOMENTUM) * loss
        found.append(mean / (1 - _MOMENTUM**number))
    return found


def _report(rates, losses, config, path):
    from kseq.pictures import rates_picture

    # A row has the rate after its step, which is that of the next one.
    rates = [rates[0] ** 2 / rates[1], *rates[:-1]]
    smoothed = smooth(losses)
    least = min(smoothed)
    at_least = rates[smoothed.index(least)]
    if least > _FALLS * smoothed[0]:
        raise UserError(
            f"the loss falls at no learning rate from {rates[0]:.1g} to "
            f"{rates[-1]:.1g} in {len(rates)} steps: it is {least:.4g} at best."
        )
    suggested = float(f"{at_least / 10:.2g}")
    marked = {
        f"suggested, {suggested:g}": suggested,
        f"this configuration, {config.learning_rate:g}": config.learning_rate,
    }
    picture = rates_picture(rates, losses, smoothed, marked)
    atomic_write(path, picture, unique_path(path))
    print(f"least loss    {least:.4g}, at a learning rate of {at_least:.2g}")
    print(f"suggestion    --learning-rate {suggested:g}, a tenth of that")
    print(f"this command  --learning-rate {config.learning_rate:g}")
    print(f"picture       {path}")
