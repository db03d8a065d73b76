"""Records of Parquet and Arrow files."""

import json
from collections.abc import Iterator, Sequence

from kseq.data.files.data_error import DataError
from kseq.data.files.text_files import Line

_ROWS = 256  # that are in memory
_END_OF_STREAM = b"\xff\xff\xff\xff\0\0\0\0"
_LISTS = ("List", "LargeList", "Sequence")


def arrow_records(
    path: str, kind: str, keys: Sequence[str]
) -> Iterator[tuple[Line, dict]]:
    """The rows of a file: "parquet", or "arrow", a stream or a file of Arrow.

    Labels of the library `datasets` are numbers whose names are in the schema;
    a record has the names. Without `keys` all values are read.

    Raises:
        DataError: the file cannot be read, or there is no pyarrow.
    """
    format_name = kind.capitalize()
    try:
        import pyarrow
    except ModuleNotFoundError:
        raise DataError(
            f"{path}: {format_name} needs the extra parquet of kseq: pip "
            "install pyarrow"
        ) from None
    read = _parquet_batches if kind == "parquet" else _arrow_batches
    number, nothing, features = 0, None, {}
    try:
        for schema, batch in read(path, keys):
            if nothing is None:
                nothing = {
                    each.name: _placeholder(each.type) for each in schema
                }
                features = _features_with_labels(schema)
            for row in batch.to_pylist():
                number += 1
                line = Line(b"", path, number)
                row = _with_names(line, row, features)
                yield line, _without_nulls(row, nothing)
    except DataError:
        raise
    except (
        *(pyarrow.ArrowException, OSError, ValueError, TypeError),
        OverflowError,  # a date that Python does not have
    ) as error:
        reason = " ".join(str(error).split())
        raise DataError(
            f"{path} cannot be read as {format_name}: {reason:.200}"
        ) from None


def _parquet_batches(path, keys):
    from pyarrow import parquet

    from kseq.data.files.arrow_sizes import rows_together, small_parts

    # In small parts: a row group can have a million rows.
    with parquet.ParquetFile(path, pre_buffer=False, buffer_size=2**16) as file:
        schema = file.schema_arrow
        wanted = [name for name in schema.names if _is_wanted(name, keys)]
        rows = rows_together(path, file.metadata, wanted, most=_ROWS)
        missing = file.metadata.num_rows
        for batch in file.iter_batches(rows, columns=wanted, use_threads=False):
            missing -= batch.num_rows
            yield from ((schema, part) for part in small_parts(batch))
        if missing:  # a damaged page ends a column without an error
            raise ValueError(
                f"it has {file.metadata.num_rows - missing} of "
                f"{file.metadata.num_rows} rows"
            )


def _arrow_batches(path, keys):
    import pyarrow
    from pyarrow import ipc

    from kseq.data.files.arrow_sizes import check_rows, small_parts

    with pyarrow.OSFile(path) as file:
        start, end = _stream_of(file)
        file.seek(start)
        schema = ipc.open_stream(file).schema
        wanted = [
            place
            for place, name in enumerate(schema.names)
            if _is_wanted(name, keys)
        ]
        rows = 0
        for batch in _checked_batches(file, start, end, wanted):
            batch.validate(full=True)  # what is damaged can end the process
            check_rows(rows := rows + batch.num_rows, file.size())
            for first in range(0, batch.num_rows, _ROWS):
                parts = small_parts(batch.slice(first, _ROWS))
                yield from ((schema, part) for part in parts)


def _stream_of(file):
    """Where the stream of an open file starts and ends."""
    size = file.size()
    if file.read(8) == b"ARROW1\0\0":
        file.seek(max(size - 10, 0))
        footer, magic = file.read(4), file.read(6)
        start, end = 8, size - 10 - int.from_bytes(footer, "little")
        is_whole = magic == b"ARROW1"
    else:
        start, end, is_whole = 0, size, True
    file.seek(max(end - len(_END_OF_STREAM), 0))
    if not is_whole or file.read(len(_END_OF_STREAM)) != _END_OF_STREAM:
        raise ValueError("it is truncated, or not in the format of Arrow")
    return start, end


def _checked_batches(file, start, end, wanted):
    from pyarrow import ipc

    from kseq.data.files.arrow_messages import check_next_batch

    options = ipc.IpcReadOptions(use_threads=False, included_fields=wanted)
    file.seek(start)
    batches = ipc.open_stream(file, options=options)
    while (position := file.tell()) < end:
        check_next_batch(file)
        file.seek(position)
        try:
            yield batches.read_next_batch()
        except StopIteration:
            break
    if file.tell() != end:
        raise ValueError("it ends before the end of the file")


def _placeholder(kind):
    """A placeholder for a value that is null or not needed.

    A struct has those of its keys, a list that of its items.
    """
    name = str(kind)
    if name.startswith("struct<"):
        inner = map(kind.field, range(kind.num_fields))
        return {each.name: _placeholder(each.type) for each in inner}
    if name.startswith(("list<", "large_list<", "fixed_size_list<")):
        return [_placeholder(kind.value_type)]
    return ""


def _is_wanted(name, keys):
    return not keys or any(f"{key}.".startswith(f"{name}.") for key in keys)


def _features_with_labels(schema) -> dict:
    """What `datasets` says of the columns, if some have labels."""
    about = (schema.metadata or {}).get(b"huggingface", b"")
    if b'"ClassLabel"' not in about:
        return {}
    try:
        return json.loads(about)["info"]["features"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return {}


def _with_names(line, value, feature):
    """A value with the names of its labels instead of their numbers."""
    if isinstance(feature, list):  # a list of one, how older files write it
        feature = {"_type": "List", "feature": feature[0] if feature else None}
    if not isinstance(feature, dict) or not feature:
        return value
    kind = feature.get("_type")
    if kind == "ClassLabel" and isinstance(value, int):
        return _name_of(line, value, feature.get("names"))
    inner = feature.get("feature") if kind in _LISTS else feature
    if isinstance(value, list):
        return [_with_names(line, item, inner) for item in value]
    if isinstance(value, dict) and isinstance(inner, dict):
        return {
            key: _with_names(line, item, inner.get(key))
            for key, item in value.items()
        }
    return value


def _name_of(line, number, names):
    if number == -1:  # of a test set without labels
        return None
    if not isinstance(names, list) or not 0 <= number < len(names):
        count = len(names) if isinstance(names, list) else 0
        raise DataError(
            f"{line}: expected the number of one of {count} labels; found "
            f"{number}"
        )
    return str(names[number])


def _without_nulls(value, nothing):
    """Nulls are empty cells, as in a CSV."""
    if isinstance(nothing, dict):
        return {
            key: _without_nulls((value or {}).get(key), inner)
            for key, inner in nothing.items()
        }
    if isinstance(value, list) and isinstance(nothing, list):
        return [_without_nulls(item, *nothing) for item in value]
    return "" if value is None else value
