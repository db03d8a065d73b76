"""The command line of a recipe."""

import dataclasses
import logging
import sys
from pathlib import Path

from kseq.command_line.exit_code import exit_code
from kseq.command_line.recipe_options import read_options
from kseq.data.files.url_files import local_copies, urls_of
from kseq.process import start_keras, stop_in_order

# Fields of a config that name data.
_DATA = ("train", "validation", "vectors", "features", "network_weights")


def run_recipe(main, config, without_files, corpus=None, presets=None):
    """Reads the config from the command line and runs the recipe with it.

    Every field of the config becomes an option; invalid values, and files of
    `--train` and `--validation` that are missing or whose first row is wrong,
    are rejected before TensorFlow is imported. URLs of data are replaced by
    local copies, see `kseq.data.files.url_files.local_copies`. An error that
    the user can fix gives one message and an exit code; with `--debug` it keeps
    its traceback.

    The process ends with exit code 0; 2 if the command, a file or the
    configuration is wrong; 3 if training diverged; 4 if memory or disk is full;
    5 if another machine of the cluster was lost; 129, 130 and 143 after SIGHUP,
    Ctrl-C and SIGTERM; 141 if the reader of standard output has exited.

    Args:
        main: callable, config -> None.
        config: a dataclass instance. These are its defaults with files of the
            user, that is, with `--train`. The types of its fields may be
            those of `kseq.command_line.option_types`.
        without_files: the same, its defaults for the built-in corpus.
        corpus: what the files contain: "pairs", "documents", "tags",
            "dialogues", "text", "captions" or "transcripts", with the columns
            of `config.columns`. None: only their existence is checked.
        presets: {name: dict of fields}, defaults that `--preset` chooses; or
            None.

    Raises:
        SystemExit: unless the exit code is 0.
    """
    logging.basicConfig(level=logging.WARNING, format="%(message)s")
    logging.getLogger("kseq").setLevel(logging.INFO)
    page = sys.modules["__main__"]
    name = getattr(page, "__command__", Path(sys.argv[0]).name)

    def read():
        return read_options(
            config,
            without_files,
            sys.argv[1:],
            corpus,
            presets,
            prog=name,
            description=page.__doc__,
        )

    def act(options):
        if instead := getattr(page, "__instead__", None):  # `kseq plan`
            instead(options.config)
            return
        start_keras()
        from kseq.devices import device_strategy

        device_strategy()  # before TensorFlow does anything else
        with stop_in_order():
            found = urls_of(options.config, _DATA)
            copies = {
                name: local_copies(value) for name, value in found.items()
            }
            main(dataclasses.replace(options.config, **copies))

    if code := exit_code(read, act, name=name, broken_pipe=141):
        sys.exit(code)
