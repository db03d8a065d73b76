"""The exit codes of commands and recipes."""

import contextlib
import errno
import os
import sys

from kseq.command_line.option_types import option
from kseq.files.model_path import is_version
from kseq.terminal import escaped_line
from kseq.user_error import DiskError, UserError, reason_of, reasons_of

# Errors of TensorFlow, not imported here, if a machine of the cluster is lost.
_LOST = ("UnavailableError", "AbortedError")
_closed = set()  # names of standard files that the caller has closed


def exit_code(read, act, *, name, broken_pipe=0):
    """Reads options, acts on them, and returns the exit code of the process.

    An error that the user can fix is one message on standard error. The code is
    2 if the command, a file or the configuration is wrong, 3 if training
    diverged, 4 if memory or disk is full, 130 after Ctrl-C, and 5 if another
    machine of the cluster was lost, which ends the process at once.

    Args:
        read: callable that returns the options, an object. Errors keep their
            traceback if its attribute `debug` is true, or KSEQ_DEBUG is set.
        act: callable, options -> None.
        name: str, what messages begin with.
        broken_pipe: int, the code if standard output is closed by its reader.

    Returns:
        int.
    """
    open_standard_files()
    options = None
    try:
        try:
            options = read()
            act(options)
        finally:
            sys.stdout.flush()
    except SystemExit as error:
        return _code_of(error)
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:  # the reader has stopped
        _flush_or_discard_output()
        return broken_pipe
    except Exception as error:
        code, message = _explain(error, options)
        _flush_or_discard_output()
        debug = os.environ.get("KSEQ_DEBUG") or getattr(options, "debug", False)
        if code is None or debug:
            raise
        message = escaped_line(message)  # of names in untrusted files
        with contextlib.suppress(OSError):  # standard error is full, too
            print(f"{name}: {message}", file=sys.stderr, flush=True)
        if code == 5:
            os._exit(5)  # otherwise TensorFlow would wait for the lost machine
        return code
    return 0


def open_standard_files():
    """Opens those of the descriptors 0 to 2 that the caller has closed.

    The next file that is opened would otherwise take their number.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            _closed.add(name)
            # Also standard input: who wants to read it gets an error.
            found = os.open(os.devnull, os.O_WRONLY)
            if found != number:
                os.dup2(found, number)
                os.close(found)
            setattr(sys, name, open(number, "w" if number else "r"))  # noqa: SIM115
    # For file names and texts of users on a terminal that cannot show them.
    for file in (sys.stdout, sys.stderr):
        if hasattr(file, "reconfigure"):
            file.reconfigure(errors="backslashreplace")


def check_output_is_open():
    """UserError if the caller has closed standard output."""
    if "stdout" in _closed:
        raise UserError("standard output is closed, so answers would be lost.")


def _explain(error, options):
    """(exit code, message); the code is None for an error of the program."""
    kind = type(error).__name__
    if kind in _LOST:
        return 5, (
            "another machine of the cluster was lost. Start all of them again "
            "with the same commands, and training resumes from its last "
            "checkpoint."
        )
    if isinstance(error, MemoryError) or kind == "ResourceExhaustedError":
        return 4, _exhausted(error, options)
    if isinstance(error, UserError):
        return error.exit_code, str(error)
    path = getattr(options, "path", None)
    if _is_of_tensorflow(error) and path and is_version(path):
        return 2, (
            f"{path} could not answer: is it broken, or is the "
            f"input of a different kind? {escaped_line(reason_of(error)[:300])}"
        )
    if isinstance(error, OSError) and error.errno not in (None, errno.EBADF):
        return 4 if error.errno in DiskError.errnos else 2, _described(error)
    return None, ""


def _is_of_tensorflow(error):
    """Whether an operation of a graph has failed."""
    return any(kind.__name__ == "OpError" for kind in type(error).__mro__)


def _exhausted(error, options):
    """The line that says what is full; errors of a graph have others before."""
    lines = reasons_of(error) or ["Out of memory."]
    for line in lines:
        if "space left" in line or "quota" in line:  # on the disk
            return line
    memory = [line for line in lines if "OOM" in line] or lines
    return memory[0] + _batch_sizes(options)


def _described(error):
    """A message for an OSError; without a path, it is about an unnamed file."""
    if error.filename is not None:
        return f"{os.fsdecode(error.filename)}: {error.strerror}."
    if error.errno in DiskError.errnos:
        return (
            "standard output, or a temporary file, cannot be written: "
            f"{error.strerror}."
        )
    if "temporary directory" in str(error.strerror):
        return (
            f"{error.strerror}. Set TMPDIR to a directory that can be written."
        )
    return str(error)


def _batch_sizes(options):
    """The options to raise, or to lower, if memory is full."""
    values = vars(getattr(options, "config", options)) if options else {}
    sizes = [
        f"{option(name)} is {value or 'not given'}"
        for name, value in values.items()
        if name == "accumulation_steps" or name.startswith("batch_")
    ]
    return f" ({', '.join(sizes)})" if sizes else ""


def _code_of(error):
    if error.code is None or isinstance(error.code, int):
        return error.code or 0
    print(error.code, file=sys.stderr)
    return 1


def _flush_or_discard_output():
    """Flushes standard output, so that Python cannot fail to at exit."""
    try:
        sys.stdout.flush()
    except OSError:
        nothing = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nothing, sys.stdout.fileno())
        os.close(nothing)
