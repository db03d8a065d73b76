"""The parser of all command lines."""

import argparse
import difflib
import sys


class CommandParser(argparse.ArgumentParser):
    """An `ArgumentParser` with one-line errors that suggest a correction.

    Options are not abbreviated, and `--batch_size` is `--batch-size`.
    """

    def __init__(self, **kwargs):
        kwargs.setdefault("formatter_class", _HelpFormatter)
        super().__init__(allow_abbrev=False, **kwargs)

    def error(self, message):
        self.exit(2, f"{self.prog}: {message}\n")

    def parse_known_args(self, args=None, namespace=None):
        if args is not None:
            # What follows is not an option, but may be a path.
            end = args.index("--") if "--" in args else len(args)
            options = [_with_dashes(word) for word in args[:end]]
            self._refuse_values_of_flags(options)
            args = [*options, *args[end:]]
        namespace, unknown = super().parse_known_args(args, namespace)
        if unknown:
            [word, *_] = unknown[0].split("=")
            if word.startswith("-"):
                meant = did_you_mean(word, self._option_string_actions)
                meant = meant or " --help lists the options."
                self.error(f"there is no option {word}.{meant}")
            self.error(f"unexpected {word!r}.")
        return namespace, unknown

    def _refuse_values_of_flags(self, words):
        for word in words:
            name, equals, value = word.partition("=")
            action = self._option_string_actions.get(name)
            if equals and action and action.nargs == 0:
                self.error(f"{name} takes no value. Received: {value!r}")

    def _check_value(self, action, value):
        if action.choices is None or value in action.choices:
            return
        choices = [str(choice) for choice in action.choices]
        message = f"expected one of {', '.join(choices)}. Received: {value!r}."
        meant = did_you_mean(str(value), choices)
        raise argparse.ArgumentError(action, message + meant)

    def _get_values(self, action, words):
        # argparse reads `--heads=--` as an empty list.
        if action.option_strings and words == ["--"]:
            raise argparse.ArgumentError(action, "expected a value")
        return super()._get_values(action, words)

    def _print_message(self, message, file=None):
        # The method of argparse ignores errors, such as a full disk.
        (file or sys.stderr).write(message or "")


class _HelpFormatter(argparse.RawDescriptionHelpFormatter):
    def __init__(self, prog):
        super().__init__(prog, max_help_position=30, width=80)

    def _format_args(self, action, default_metavar):
        # argparse repeats all choices for the second value.
        if action.choices and action.nargs == argparse.ONE_OR_MORE:
            return f"{','.join(action.choices)} ..."
        return super()._format_args(action, default_metavar)


def did_you_mean(word, known):
    """A sentence with the known words that are closest, or nothing.

    Example:
        >>> did_you_mean("--stesp", ["--seed", "--steps"])
        ' Did you mean --steps?'
        >>> did_you_mean("--nope", ["--seed", "--steps"])
        ''
    """
    names = {name.strip("-"): name for name in known}
    word = word.strip("-")
    close = difflib.get_close_matches(word, names, n=1)
    if len(word) > 2:
        close = close or [name for name in names if word in name]
    meant = [names[name] for name in close]
    return f" Did you mean {' or '.join(meant)}?" if meant else ""


def _with_dashes(word):
    name, *value = word.split("=", 1)
    if not name.startswith("--"):
        return word
    return "=".join([name.replace("_", "-"), *value])
