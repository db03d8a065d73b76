"""Messages about what was left out or changed while a file was read."""


def reading_problems(name, kept, left_out, invalid=0):
    """One line per problem: what is left out by reason, and invalid lines.

    Example:
        >>> reading_problems("a.tsv", (8, "documents"), {"blank": 2})
        ['a.tsv: 2 of 10 documents are left out: 2 blank.']
    """
    lines = []
    number, plural = kept
    if total := sum(left_out.values()):
        reasons = ", ".join(f"{n} {reason}" for reason, n in left_out.items())
        lines.append(
            f"{name}: {total} of {number + total} {plural} are left out: "
            f"{reasons}."
        )
    return lines + invalid_lines(name, invalid)


def invalid_lines(name, count):
    """One line if some are not valid UTF-8, no line otherwise."""
    if not count:
        return []
    which = "1 line is" if count == 1 else f"{count} lines are"
    return [f"{name}: {which} not valid UTF-8; invalid bytes become U+FFFD."]
