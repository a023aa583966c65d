"""The file is believed while the process that wrote it lives, however it ended and whoever has its port by now."""

import errno
import fcntl
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from combos.admin.runtime_file import RUNTIME_NAME, RuntimeFile, running_at

WRITER = """
import sys
from pathlib import Path
from combos.admin.runtime_file import RuntimeFile
file = RuntimeFile(Path(sys.argv[1]))
file.write("127.0.0.1", int(sys.argv[2]))
print("written", flush=True)
sys.stdin.read()
"""


def started(folder: Path, port: int) -> "subprocess.Popen[bytes]":
    """Another process that has written its file."""
    process = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(folder), str(port)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2] / "addon")},
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"written\n"
    return process


def killed(process: "subprocess.Popen[bytes]") -> None:
    process.send_signal(signal.SIGKILL)
    process.communicate()


def test_a_file_is_there_while_its_process_wants_it(tmp_path: Path) -> None:
    file = RuntimeFile(tmp_path / "home")
    file.write("127.0.0.1", 10100)
    assert running_at(tmp_path / "home") == ("127.0.0.1", 10100)
    assert file.path.stat().st_mode & 0o777 == 0o600
    assert [path.name for path in file.path.parent.iterdir()] == [RUNTIME_NAME]
    file.remove()
    assert not file.path.exists()
    assert running_at(tmp_path / "home") is None
    file.remove()


def test_after_a_crash_it_is_not_believed(tmp_path: Path) -> None:
    process = started(tmp_path, 10100)
    assert running_at(tmp_path) == ("127.0.0.1", 10100)
    killed(process)
    assert (tmp_path / RUNTIME_NAME).exists()
    assert running_at(tmp_path) is None


def test_of_two_processes_the_last_one_started_counts_and_its_crash_is_seen(tmp_path: Path) -> None:
    first, second = started(tmp_path, 10100), started(tmp_path, 10101)
    assert running_at(tmp_path) == ("127.0.0.1", 10101)
    killed(second)
    assert running_at(tmp_path) is None, "the first one's lock is not the second one's"
    killed(first)


def test_the_file_of_another_process_is_not_removed(tmp_path: Path) -> None:
    first, second = RuntimeFile(tmp_path), RuntimeFile(tmp_path)
    first.write("127.0.0.1", 10100)
    second.write("::1", 10101)
    first.remove()
    assert running_at(tmp_path) == ("::1", 10101)
    second.remove()


@pytest.mark.parametrize("is_killed", [True, False])
def test_when_the_last_one_ends_another_that_lives_takes_its_place(tmp_path: Path, is_killed: bool) -> None:
    first = RuntimeFile(tmp_path)
    first.write("127.0.0.1", 10100)
    second = started(tmp_path, 10101)
    first.renew()
    assert running_at(tmp_path) == ("127.0.0.1", 10101), "the second one lives"
    killed(second)
    if not is_killed:
        (tmp_path / RUNTIME_NAME).unlink()
    first.renew()
    assert running_at(tmp_path) == ("127.0.0.1", 10100)
    before = set(os.listdir("/proc/self/fd"))
    (tmp_path / RUNTIME_NAME).unlink()
    first.renew()
    assert set(os.listdir("/proc/self/fd")) == before
    first.remove()
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_renewed_that_was_not_written_or_whose_folder_is_gone(tmp_path: Path) -> None:
    file = RuntimeFile(tmp_path / "home")
    file.renew()
    assert list(tmp_path.iterdir()) == []
    file.write("127.0.0.1", 10100)
    file.path.unlink()
    file.path.parent.rmdir()
    file.renew()
    assert list(tmp_path.iterdir()) == []
    file.remove()
    file.path.parent.mkdir()
    file.renew()
    assert list(file.path.parent.iterdir()) == []


def test_readers_are_not_taken_for_a_process(tmp_path: Path) -> None:
    """Two that look at a file that crashed at the same time."""
    killed(started(tmp_path, 10100))
    handle = os.open(tmp_path / RUNTIME_NAME, os.O_RDONLY)
    fcntl.flock(handle, fcntl.LOCK_SH)
    assert running_at(tmp_path) is None
    os.close(handle)


@pytest.mark.parametrize(
    "text",
    [
        "", "[", "[]", "{}", '{"port": 1}', '{"hostname": "127.0.0.1", "port": "x"}', '{"hostname": null, "port": 1}',
        '{"hostname": "127.0.0.1", "port": 0}', '{"hostname": "127.0.0.1", "port": 65536}', "[" * 4000, "\udcff",
        '{"hostname": "192.0.2.1", "port": 80}', '{"hostname": "models.example.com", "port": 80}',
    ],
)  # fmt: skip
def test_an_odd_file_is_as_none(tmp_path: Path, text: str) -> None:
    """Even one whose writer lives: the token goes to a loopback address or nowhere."""
    file = RuntimeFile(tmp_path)
    file.write("127.0.0.1", 10100)
    file.path.write_text(text, errors="surrogateescape")
    assert running_at(tmp_path) is None
    file.remove()


def test_a_pipe_or_a_folder_in_its_place_keeps_nobody_waiting(tmp_path: Path) -> None:
    for number, make in enumerate((os.mkfifo, Path.mkdir)):
        folder = tmp_path / str(number)
        folder.mkdir()
        make(folder / RUNTIME_NAME)
        assert running_at(folder) is None
    file = RuntimeFile(tmp_path / "0")
    file.write("127.0.0.1", 10100)
    assert running_at(tmp_path / "0") == ("127.0.0.1", 10100)
    file.remove()
    with pytest.raises(IsADirectoryError):
        RuntimeFile(tmp_path / "1").write("127.0.0.1", 10100)
    assert [path.name for path in (tmp_path / "1").iterdir()] == [RUNTIME_NAME]


@pytest.mark.parametrize("step", ["os.write", "fcntl.flock", "pathlib.Path.rename"])
def test_what_cannot_be_written_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    before = set(os.listdir("/proc/self/fd"))
    with monkeypatch.context() as patched:
        patched.setattr(step, full)
        with pytest.raises(OSError, match="No space left"):
            RuntimeFile(tmp_path).write("127.0.0.1", 10100)
    assert list(tmp_path.iterdir()) == []
    assert set(os.listdir("/proc/self/fd")) == before
