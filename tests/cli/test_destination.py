import os
from pathlib import Path

import pytest

from ansatz.cli.destination import require_free
from ansatz.errors import ResourceError, UsageError


def refuse(path, overwrite=False):
    with pytest.raises(UsageError) as caught:
        require_free(Path(path), overwrite=overwrite, advice="Do otherwise.")
    return str(caught.value)


def test_what_exists_is_not_replaced_unasked(tmp_path):
    assert refuse(tmp_path).endswith("exists. Do otherwise.")
    require_free(tmp_path, overwrite=True, advice="")


def test_a_dangling_link_counts_as_something(tmp_path):
    link = tmp_path / "link"
    try:
        link.symlink_to(tmp_path / "nowhere")
    except OSError:
        pytest.skip("this system makes no links")
    assert "exists" in refuse(link)


def test_folders_on_the_way_may_be_missing(tmp_path):
    require_free(tmp_path / "a" / "b" / "model", overwrite=False, advice="")


def test_a_file_on_the_way_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    assert "is a file, not a folder" in refuse(tmp_path / "file" / "model")


def test_a_name_of_300_characters_is_refused_in_words(tmp_path):
    assert "Choose another path" in refuse(tmp_path / ("x" * 300))


def test_a_nul_in_a_path_is_refused_in_words(tmp_path):
    assert "Choose another path" in refuse(f"{tmp_path}/a\0b")


def test_spaces_and_unicode_are_fine(tmp_path):
    require_free(tmp_path / "ein Modell für später 模型", overwrite=False, advice="")


@pytest.mark.skipif(
    os.name == "nt" or not hasattr(os, "geteuid") or os.geteuid() == 0,
    reason="root may write anywhere",
)
def test_a_folder_that_may_not_be_written_is_named(tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(ResourceError, match="no permission"):
        require_free(tmp_path / "model", overwrite=False, advice="")


def test_no_permission_is_a_lack_of_resource(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    with pytest.raises(ResourceError, match="no permission in"):
        require_free(tmp_path / "model", overwrite=False, advice="")
