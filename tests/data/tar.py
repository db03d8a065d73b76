"""Tar archives as the standard library writes them."""

import io
import tarfile


def tar(files, form=tarfile.PAX_FORMAT):
    """The bytes of an archive.

    Args:
        files: name -> bytes, or (type, target of a link); a dict, or pairs.
        form: of `tarfile`.
    """
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w", format=form) as opened:
        for name, data in files.items() if hasattr(files, "items") else files:
            info = tarfile.TarInfo(name)
            if isinstance(data, tuple):
                info.type, info.linkname = data
                data = b""
            info.size = len(data)
            opened.addfile(info, io.BytesIO(data))
    return content.getvalue()
