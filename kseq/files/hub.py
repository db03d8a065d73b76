"""Models on the Hugging Face Hub, as `hf://owner/name`."""

import importlib.util
import re

from kseq.files.cache_folder import cache_folder
from kseq.terminal import is_terminal, single_line
from kseq.user_error import DiskError, UserError

_URL = re.compile(r"hf://(\w[\w.-]*/\w[\w.-]*)(?:@(\w[\w./-]*))?")


def is_hub(path):
    """Whether a path names a model on the hub."""
    return str(path).startswith("hf://")


def hub_folder(url, patterns=None):
    """The local copy of a model on the hub, which is updated.

    Copies are in `kseq/hub` of XDG_CACHE_HOME, by default `~/.cache`. Without
    a network the copy that is there is used. `HF_ENDPOINT` and `HF_TOKEN` are
    those of the package huggingface_hub.

    Args:
        url: str, "hf://owner/name", perhaps with "@" and a revision.
        patterns: list of str, the files that are copied; None for all.

    Returns:
        `pathlib.Path`, which ends with the name of the model.

    Raises:
        UserError: if huggingface_hub is missing, or there is no such model,
            or it cannot be read.
        DiskError: if it cannot be written.
    """
    found = _URL.fullmatch(str(url))
    if found is None or ".." in str(url):  # it becomes the path of a copy
        raise UserError(
            "Expected hf://owner/name, perhaps with @revision. Received: "
            f"{str(url)!r}"
        )
    check_hub()
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HTTPError, LocalEntryNotFoundError
    from huggingface_hub.utils import disable_progress_bars

    if not is_terminal():
        disable_progress_bars()
    name, revision = found.groups()
    # One folder: with slashes a copy could be inside of that of another model.
    branch = (revision or "main").replace("/", "%2F")
    folder = cache_folder() / "hub" / branch / name
    try:
        snapshot_download(
            name, revision=revision, local_dir=folder, allow_patterns=patterns
        )
    except LocalEntryNotFoundError as error:
        raise UserError(
            f"{url} cannot be reached, and there is no copy of it: "
            f"{reason(error)}"
        ) from error
    except (HTTPError, ValueError) as error:
        raise UserError(f"{url} cannot be read: {reason(error)}") from error
    except OSError as error:
        is_full = error.errno in DiskError.errnos
        raise (DiskError if is_full else UserError)(
            f"{url} cannot be copied: {reason(error)}"
        ) from error
    if patterns is None:
        _delete_others(name, revision, folder)
    return folder


def _delete_others(name, revision, folder):
    """Deletes what the model no longer has, and an older copy still had."""
    from huggingface_hub import HfApi
    from huggingface_hub.errors import HTTPError

    try:
        kept = {*HfApi().list_repo_files(name, revision=revision)}
    except (HTTPError, OSError, ValueError):
        return  # without a network
    for path in folder.rglob("*"):
        own = path.relative_to(folder)
        is_known = own.parts[0] == ".cache" or own.as_posix() in kept
        if path.is_file() and not is_known:
            path.unlink(missing_ok=True)


def check_hub():
    """UserError unless huggingface_hub is installed, with a possible token."""
    if importlib.util.find_spec("huggingface_hub") is None:
        raise UserError(
            "Models on the Hugging Face Hub need its package: pip install "
            "'.[hub]' in a clone of kseq"
        )
    from huggingface_hub import get_token

    if not (get_token() or "").isascii():  # it is not shown
        raise UserError(
            "The token of the Hugging Face Hub, HF_TOKEN or that of `hf auth "
            "login`, has characters that none can have: expected hf_ and "
            "letters and digits."
        )


def reason(error):
    """The first lines of a message, as one."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return single_line(" ".join(lines[:2])) or type(error).__name__
