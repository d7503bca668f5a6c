"""The name of a results folder in a bucket: one for all its jobs, another for a copy of the folder."""

import shutil
from concurrent.futures import ThreadPoolExecutor

from isotrace.storage.home import home, known_home


def test_jobs_at_once_draw_one_name(tmp_path):
    with ThreadPoolExecutor(8) as pool:
        names = set(pool.map(home, [tmp_path / "cache"] * 16))
    assert names == {known_home(tmp_path / "cache")}
    assert [p.name for p in (tmp_path / "cache").iterdir()] == [".home"]


def test_a_copy_draws_its_own_and_a_moved_folder_keeps_its_name(tmp_path):
    name = home(tmp_path / "cache")
    shutil.copytree(tmp_path / "cache", tmp_path / "copy")
    assert known_home(tmp_path / "copy") is None
    assert home(tmp_path / "copy") != name
    (tmp_path / "cache").rename(tmp_path / "moved")
    assert home(tmp_path / "moved") == name


def test_a_name_that_cannot_be_read_is_drawn_again(tmp_path):
    home(tmp_path)
    (tmp_path / ".home").write_text("")
    assert known_home(tmp_path) is None
    assert home(tmp_path) == known_home(tmp_path)
