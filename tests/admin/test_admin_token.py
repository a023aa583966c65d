"""The admin token: where it comes from, how it is made, when it is not trusted."""

import re
import stat
import threading
from pathlib import Path

import pytest

from combos.admin.admin_token import FILE_NAME, VARIABLE, TokenError, admin_token, refuse_shared


def test_it_is_made_once_private_and_long(tmp_path: Path) -> None:
    token = admin_token(tmp_path / "home", {})
    assert re.fullmatch(r"ocx_admin_[A-Za-z0-9_-]{43}", token)
    path = tmp_path / "home" / FILE_NAME
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert admin_token(tmp_path / "home", {}) == token
    assert [entry.name for entry in path.parent.iterdir()] == [FILE_NAME]


def test_two_starters_end_up_with_one(tmp_path: Path) -> None:
    made: list[str] = []
    threads = [threading.Thread(target=lambda: made.append(admin_token(tmp_path, {}))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(made) == 8
    assert len(set(made)) == 1


def test_the_environment_comes_first(tmp_path: Path) -> None:
    assert admin_token(tmp_path, {VARIABLE: " chosen "}) == "chosen"
    assert not list(tmp_path.iterdir())
    assert admin_token(tmp_path, {VARIABLE: " "}).startswith("ocx_admin_")


def test_without_create_a_missing_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(TokenError, match="No such file"):
        admin_token(tmp_path, {}, create=False)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("content", ["", " \n", "two words", "\u00fc", "x" * 600])
def test_a_file_that_holds_no_token(tmp_path: Path, content: str) -> None:
    path = tmp_path / FILE_NAME
    path.write_text(content)
    path.chmod(0o600)
    with pytest.raises(TokenError) as caught:
        admin_token(tmp_path, {})
    assert "made again" in caught.value.hint


def test_links_folders_and_readable_files_are_not_trusted(tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.write_text("ocx_admin_x")
    other.chmod(0o600)
    path = tmp_path / FILE_NAME
    path.symlink_to(other)
    with pytest.raises(TokenError, match="cannot be read"):
        admin_token(tmp_path, {})
    path.unlink()
    path.symlink_to(tmp_path / "nowhere")
    with pytest.raises(TokenError, match="cannot be read"):
        admin_token(tmp_path, {})
    path.unlink()
    path.mkdir()
    with pytest.raises(TokenError):
        admin_token(tmp_path, {})
    path.rmdir()
    other.chmod(0o640)
    other.rename(path)
    with pytest.raises(TokenError, match="read by others"):
        admin_token(tmp_path, {})


def test_a_key_of_the_data_plane_is_refused() -> None:
    refuse_shared("a", ["b", "ab", ""])
    with pytest.raises(TokenError):
        refuse_shared("a", ["b", "a"])
