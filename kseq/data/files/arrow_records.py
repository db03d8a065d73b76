"""Records of Parquet."""

from kseq.data.files.data_error import DataError
from kseq.data.files.text_files import Line

_PARQUET_ROWS = 256  # that are in memory


def parquet_records(path, keys):
    """The rows of a file, see `read_records`."""
    try:
        import pyarrow
        from pyarrow import parquet
    except ModuleNotFoundError:
        raise DataError(
            f"{path}: Parquet needs the extra parquet of kseq: pip install "
            "pyarrow"
        ) from None
    try:
        # In small parts: a row group can have a million rows.
        with parquet.ParquetFile(
            path, pre_buffer=False, buffer_size=2**16
        ) as file:
            nothing = {
                field.name: _nothing(field.type) for field in file.schema_arrow
            }
            wanted = [name for name in nothing if _is_wanted(name, keys)]
            number = 0
            for batch in file.iter_batches(
                _PARQUET_ROWS, columns=wanted, use_threads=False
            ):
                for row in batch.to_pylist():
                    number += 1
                    record = {**nothing, **row}
                    yield Line(b"", path, number), _without_nulls(record)
    except (pyarrow.ArrowException, OSError, ValueError, TypeError) as error:
        reason = " ".join(str(error).split())
        raise DataError(
            f"{path} cannot be read as Parquet: {reason:.200}"
        ) from None


def _nothing(kind):
    """A placeholder for a value that is not needed, with its nested keys."""
    inner = range(kind.num_fields) if str(kind).startswith("struct") else ()
    return {kind.field(place).name: None for place in inner} or None


def _is_wanted(name, keys):
    return not keys or any(f"{key}.".startswith(f"{name}.") for key in keys)


def _without_nulls(value):
    """Nulls are empty cells, as in a CSV."""
    if isinstance(value, dict):
        return {key: _without_nulls(item) for key, item in value.items()}
    return "" if value is None else value
