"""The base of all errors that the user of a command can fix."""


class UserError(ValueError):
    """Its message is all that a command prints before it exits."""

    exit_code = 2


class ArgumentError(UserError):
    """An argument of a layer or a model, which may come from an option."""
