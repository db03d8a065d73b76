"""Differences between two descriptions."""

from kseq.terminal import escaped_line


def changes(old, new, all_keys):
    """Differences between two JSON values.

    Args:
        old: nested dicts and lists.
        new: the same.
        all_keys: bool, whether leaves that are on one side only count.

    Returns:
        A list of (key, text): "model.units", "model.units: 8 -> 16".

    Example:
        >>> changes({"units": 8, "seed": 1}, {"units": 16}, all_keys=False)
        [('units', 'units: 8 -> 16')]
        >>> changes({"freeze": ["a"]}, {"freeze": []}, all_keys=True)
        [('freeze.0', 'freeze.0: a -> none')]
    """
    old, new = _leaves(old), _leaves(new)
    return [
        (
            key,
            escaped_line(
                f"{key}: {old.get(key, 'none')} -> {new.get(key, 'none')}"
            ),
        )
        for key in sorted(old.keys() | new.keys())
        if (all_keys or (key in old and key in new))
        and (key not in old or key not in new or old[key] != new[key])
        # Keras numbers the optimizers and layers of a process: adam, adam_1. It
        # finds a class by its registered name, whatever its module.
        if not key.endswith((".config.name", ".module"))
    ]


def _leaves(tree, prefix=""):
    """{"a.b": value} of nested dicts and lists."""
    leaves = {}
    pairs = tree.items() if isinstance(tree, dict) else enumerate(tree)
    for key, value in pairs:
        if isinstance(value, dict | list):
            leaves |= _leaves(value, f"{prefix}{key}.")
        else:
            leaves[f"{prefix}{key}"] = value
    return leaves
