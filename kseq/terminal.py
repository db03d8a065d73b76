"""What commands print: text on one line, progress of long operations."""

import contextlib
import re
import sys
import threading
import time

_FIRST = 5  # seconds until the first line in a pipe
_PAUSE = 10  # seconds between two lines in a pipe

# Control characters, and what some programs take for the end of a line.
BREAKS = re.compile("[\0-\x1f\x7f-\x9f\u2028\u2029]")
# And bytes of a file name that are not UTF-8.
_ESCAPED = re.compile(f"{BREAKS.pattern}|[\ud800-\udfff]")


@contextlib.contextmanager
def progress(description, total=None, unit=""):
    """Shows the progress of an operation on standard error.

    On a terminal, this is a bar with the time left. Otherwise it is one line
    after five seconds and then one every ten seconds; a quicker operation
    prints nothing.

    Args:
        description: str, such as "Reading train.de".
        total: int, number of items, or None if it is unknown.
        unit: str, what the items are, such as "lines".

    Yields:
        A function of the number of items done since its last call.

    Raises:
        ValueError: if `total` is negative.

    Example:
        >>> with progress("Reading", total=2, unit="lines") as advance:
        ...     for line in ("a", "b"):
        ...         advance(1)
    """
    if total is not None and total < 0:
        raise ValueError(f"total must not be negative. Received: total={total}")
    shown = _bar if is_terminal() else _lines
    with shown(description, total, unit) as advance:
        yield advance


@contextlib.contextmanager
def below_keras_bar():
    """Prints below the progress bar of `fit`, which overwrites its line."""
    if not sys.stdout.isatty():
        yield
        return
    print(flush=True)
    try:
        yield
    finally:
        print("\x1b[A", end="", flush=True)  # up


def is_terminal():
    """Whether progress is shown on a terminal."""
    try:
        return sys.stderr.isatty()
    except (AttributeError, ValueError):  # there is none, or it is closed
        return False


@contextlib.contextmanager
def _bar(description, total, unit):
    # Imported only on a terminal.
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )
    from rich.text import Text

    class Description(TextColumn):
        def render(self, task):
            return Text(task.description)  # a name may look like markup

    columns = [Description("")]
    if total is not None:
        columns.append(BarColumn(bar_width=20))
        counts = "{task.completed:,.0f} of {task.total:,.0f} "
    else:
        counts = "{task.completed:,.0f} "
    if unit:
        columns.append(TextColumn(counts + unit))
    columns.append(TimeElapsedColumn())
    if total is not None:
        columns += [TextColumn("left"), TimeRemainingColumn()]
    with Progress(
        *columns,
        console=Console(stderr=True),
        refresh_per_second=4,
        transient=True,
    ) as bar:
        task = bar.add_task(description, total=total)
        yield lambda count: bar.advance(task, count)


@contextlib.contextmanager
def _lines(description, total, unit):
    done = 0
    start = time.monotonic()
    has_ended = threading.Event()

    def advance(count):
        nonlocal done
        done += count

    def write():
        pause = _FIRST
        while not has_ended.wait(pause):
            line = _line(description, done, total, unit, start)
            with contextlib.suppress(OSError, ValueError, AttributeError):
                sys.stderr.write(line + "\n")
                sys.stderr.flush()
            pause = _PAUSE

    thread = threading.Thread(target=write, daemon=True)
    thread.start()
    try:
        yield advance
    finally:
        has_ended.set()
        thread.join()


def _line(description, done, total, unit, start):
    description = " ".join(description.split())
    seconds = time.monotonic() - start
    if total is None:
        done = f": {done:,} {unit}" if unit else f" ... {_minutes(seconds)}"
        return description + done
    share = f"{done:,} of {total:,} {unit}"
    if not unit:
        share = f"{100 * done // max(total, 1)} %"
    line = f"{description}: {share}"
    if not 0 < done < total:
        return line
    return f"{line}, {_minutes(seconds * (total - done) / done)} left"


def _minutes(seconds):
    seconds = round(seconds)
    return f"{seconds // 60}:{seconds % 60:02}"


def single_line(text, keep=""):
    r"""Replaces control characters and line separators by spaces.

    Args:
        text: str; anything else is converted by `str`.
        keep: str, characters that are kept.

    Returns:
        str of the same length.

    Example:
        >>> single_line("fire\nand\tflood")
        'fire and flood'
    """
    return BREAKS.sub(
        lambda found: found[0] if found[0] in keep else " ", str(text)
    )


def escaped_line(text):
    r"""Escapes control characters and line separators, as `repr` does.

    Bytes of a file name that are not UTF-8, which are surrogates, are escaped
    as well.

    Example:
        >>> print(escaped_line("a\nb"))
        a\nb
    """
    return _ESCAPED.sub(lambda found: repr(found[0])[1:-1], str(text))
