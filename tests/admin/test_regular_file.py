"""Only regular files are read, never more than a limit, and nobody waits for the other end of a pipe."""

import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from combos.admin.regular_file import open_regular, read_regular


def test_a_file_is_read_up_to_one_byte_beyond_the_limit(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"12345")
    assert read_regular(path, 5) == b"12345"
    assert read_regular(path, 3) == b"1234"
    link = tmp_path / "link"
    link.symlink_to(path)
    assert read_regular(link, 5) == b"12345"


def test_a_file_without_an_end_does_not_fill_the_memory(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.touch()
    os.truncate(path, 2**40)
    assert len(read_regular(path, 1000)) == 1001


def listening(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(path))


def looping(path: Path) -> None:
    path.symlink_to(path)


def device(path: Path) -> None:
    path.symlink_to("/dev/zero")


@pytest.mark.parametrize("make", [Path.mkdir, os.mkfifo, listening, looping, device])
def test_what_is_no_file_is_refused_at_once_and_leaves_nothing_open(
    tmp_path: Path, make: Callable[[Path], None]
) -> None:
    path = tmp_path / "x"
    make(path)
    before = set(os.listdir("/proc/self/fd"))
    with pytest.raises(OSError) as caught:  # noqa: PT011 - the kinds differ in errno, not in what they say to callers
        read_regular(path, 10)
    assert caught.value.strerror
    assert set(os.listdir("/proc/self/fd")) == before


def test_a_file_that_is_made_is_private(tmp_path: Path) -> None:
    path = tmp_path / "made"
    os.close(open_regular(path, os.O_RDWR | os.O_CREAT))
    assert path.stat().st_mode & 0o777 == 0o600
    with pytest.raises(FileNotFoundError):
        open_regular(tmp_path / "missing")
