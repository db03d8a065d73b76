"""kseq publish: uploads a run or an export to the Hugging Face Hub."""

import glob
import re
from pathlib import Path

from kseq.files.hub import reason
from kseq.files.model_path import is_run
from kseq.runs import RunDirectory, best_weights
from kseq.runs.checkpoint_files import (
    check_exported_weights,
    read_weights,
)
from kseq.user_error import UserError

_CARD = """---
library_name: kseq
tags:
- kseq
- keras
- tensorflow
---

"""
_USE = """
## From the hub

    import kseq
    model = kseq.load('hf://{name}')
"""
# Of a run: what it is opened and fine-tuned with; not the paths, metrics and
# data of the machine that trained it.
_OF_RUN = (
    *("config.json", "environment.json", "model.json", "task.json"),
    *("source.model", "target.model", "answers.txt", "network.npz"),
    *("calibration.json", "documents.json"),
)
# What an earlier upload may have left: of a run, and versions of an export.
_OURS = re.compile(
    rf"({'|'.join(map(re.escape, _OF_RUN))}|learning_curve\.png|"
    r"(checkpoints|[0-9]+)/.*)"
)


def run(options):
    """Uploads it in one commit, and prints how it is loaded.

    What an earlier upload of a run or an export has left is deleted: it would
    be loaded in place of this one.
    """
    from huggingface_hub import (
        CommitOperationAdd,
        CommitOperationDelete,
        HfApi,
    )
    from huggingface_hub.errors import HTTPError

    files = _files(options.path, options.name)
    added = [
        CommitOperationAdd(path_in_repo=name, path_or_fileobj=content)
        for name, content in files.items()
    ]
    hub = HfApi()
    try:
        hub.create_repo(options.name, private=options.private, exist_ok=True)
        deleted = [
            CommitOperationDelete(path_in_repo=name)
            for name in hub.list_repo_files(options.name)
            if _OURS.fullmatch(name) and name not in files
        ]
        hub.create_commit(
            options.name,
            [*added, *deleted],
            commit_message="Upload with kseq",
        )
    except (HTTPError, OSError, ValueError) as error:
        raise UserError(
            f"{options.name} cannot be written: {reason(error)}"
        ) from error
    print(f"kseq predict hf://{options.name} < FILE")


def _files(path, name):
    """A dict, path in the repository -> path of the file, or bytes."""
    if is_run(path):
        run = RunDirectory(path)
        card, top = run.readme, ""
        found = [path / each for each in _OF_RUN if (path / each).is_file()]
        checkpoint, _ = read_weights(run, best_weights(run))
        found += map(Path, glob.glob(f"{glob.escape(checkpoint)}.*"))
    else:
        check_exported_weights(path)
        card, top = path / "assets.extra" / "README.md", f"{path.name}/"
        found = [each for each in path.rglob("*") if each.is_file()]
    files = {
        f"{top}{each.relative_to(path).as_posix()}": each for each in found
    }
    curve = card.with_name(RunDirectory(path).learning_curve.name)
    if curve.is_file():
        files[curve.name] = curve
    text = card.read_text("utf-8", "replace") if card.is_file() else "# kseq\n"
    files["README.md"] = (_CARD + text + _USE.format(name=name)).encode()
    return files
