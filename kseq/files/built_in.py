"""Built-in models, as `builtin://name`: trained once, when first asked for."""

import re
from pathlib import Path

import kseq
from kseq.files.cache_folder import cache_folder
from kseq.files.file_lock import wait_for_lock
from kseq.terminal import progress
from kseq.user_error import UserError, write_error

_SCHEME = "builtin://"
_RUN = re.compile(r'"runs/(\w+)"')
# A recipe writes its exports into the current folder.
_PROGRAM = """
import os, sys
from kseq.cli import main
os.chdir(sys.argv[1])
sys.exit(main(sys.argv[2:]))
"""


def is_built_in(path):
    """Whether a path names a built-in model."""
    return str(path).startswith(_SCHEME)


def recipe_pages():
    """{name: path}, of the wheel or, in a checkout, of the folder beside."""
    package = Path(kseq.__file__).parent
    folders = (package / "recipes", package.parent / "recipes")
    folder = next(folder for folder in folders if folder.is_dir())
    return {path.stem: path for path in sorted(folder.glob("*.py"))}


def built_in_run(url):
    """The run of a built-in model, which is trained if it is not there.

    It is what `kseq train RECIPE` trains on its built-in data, in a process of
    its own. Runs are in `kseq/builtin/VERSION` of XDG_CACHE_HOME, by default
    `~/.cache`. Of several processes one trains, and the others wait for it. A
    training that was interrupted is resumed.

    Args:
        url: str, "builtin://name", the name of a recipe, or of the run that it
            trains on its built-in data.

    Returns:
        `pathlib.Path`, which ends with the name of the run.

    Raises:
        UserError: if there is no such name, or training fails.
        DiskError: if the disk is full.
    """
    recipe, name = recipe_and_run(str(url))
    folder = cache_folder() / "builtin" / kseq.__version__
    run = folder / "runs" / name
    if _is_trained(folder, name):
        return run
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with wait_for_lock(folder / f"{name}.lock", str(url)) as lock:
            if not _is_trained(folder, name):
                _train(recipe, run, folder / f"{name}.log", lock)
    except OSError as error:
        raise write_error(folder, error) from error
    return run


def recipe_and_run(url):
    """The names of the recipe and of the run; UserError if there are none."""
    name = url.removeprefix(_SCHEME)
    # The last run of a page is that of its built-in data.
    runs = {
        recipe: _RUN.findall(path.read_text("utf-8"))[-1]
        for recipe, path in recipe_pages().items()
    }
    for recipe, run in runs.items():
        if name in (recipe, run):
            return recipe, run
    raise UserError(
        f"Expected {_SCHEME}NAME, with the name of a recipe or one of "
        f"{', '.join(runs.values())}. Received: {url!r}"
    )


def _is_trained(folder, name):
    """Whether a run has been exported, after its training."""
    exports = folder.glob(f"saved_models/{name}/[0-9]*/saved_model.pb")
    return (folder / "runs" / name).is_dir() and any(exports)


def _train(recipe, run, log, lock):
    from kseq.files.training_process import failure, training_process

    seen = 0

    def advance_to(rows):
        nonlocal seen
        newest = max((row["step"] for row in rows), default=0)
        advance(newest - seen)
        seen = newest

    with (
        progress(
            f"Training {_SCHEME}{run.name}, once", None, "steps"
        ) as advance,
        training_process(
            ["-c", _PROGRAM, str(log.parent), "train", recipe],
            run / "metrics.jsonl",
            log,
            process_group=0,  # Ctrl-C ends this process, which ends that one
            pass_fds=[lock],  # which holds the lock if this one is killed
        ) as training,
    ):
        training.wait_for(advance_to)
    if training.code:
        raise failure(training, f"the training of {run}")
