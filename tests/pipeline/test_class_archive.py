"""The archive of Spark's classes is used only if nobody else can have written it."""

from __future__ import annotations

import pytest

from pgtrickle.pipeline.class_archive import ClassArchive, find_archive

# it asks Java for its version
pytestmark = pytest.mark.spark


@pytest.fixture
def archive(tmp_path):
    found = find_archive(tmp_path / "cache", tmp_path / "spark", tmp_path)
    assert found is not None
    return found


def write(archive: ClassArchive) -> None:
    archive.path.parent.mkdir(mode=0o700, parents=True)
    archive.path.touch(mode=0o600)


def test_classes_are_listed_until_there_is_an_archive(archive):
    assert archive.options.startswith(f"-XX:DumpLoadedClassList={archive.classes} ")
    write(archive)
    assert archive.options.startswith(f"-XX:SharedArchiveFile={archive.path} ")


def test_an_archive_that_others_could_write_is_not_used(archive):
    write(archive)
    archive.path.parent.chmod(0o770)
    assert not archive.is_written
    archive.path.parent.chmod(0o700)
    archive.path.chmod(0o602)
    assert not archive.is_written
    archive.path.chmod(0o600)
    assert archive.is_written


def test_a_link_is_not_used(archive, tmp_path):
    archive.path.parent.mkdir(mode=0o700, parents=True)
    (tmp_path / "elsewhere").touch(mode=0o600)
    archive.path.symlink_to(tmp_path / "elsewhere")
    assert not archive.is_written


def test_another_spark_has_another_archive(tmp_path):
    jars = tmp_path / "spark" / "jars"
    jars.mkdir(parents=True)
    (jars / "core.jar").write_text("one")
    first = find_archive(tmp_path, tmp_path / "spark", tmp_path)
    (jars / "core.jar").write_text("another")
    second = find_archive(tmp_path, tmp_path / "spark", tmp_path)
    assert first is not None
    assert second is not None
    assert first.path != second.path


def test_there_is_none_without_a_cache_or_with_a_name_that_the_jvm_would_split(tmp_path):
    assert find_archive(None, tmp_path, tmp_path) is None
    assert find_archive(tmp_path / "my cache", tmp_path, tmp_path) is None


def test_an_archive_is_written_from_the_listed_classes(archive):
    archive.classes.write_text("java/lang/Object\njava/lang/String\n")
    archive.write("nothing.jar")
    assert archive.is_written
    assert list(archive.path.parent.iterdir()) == [archive.path]


def test_a_directory_that_others_could_write_gets_no_archive(archive):
    archive.classes.write_text("java/lang/Object\n")
    archive.path.parent.mkdir(parents=True)
    archive.path.parent.chmod(0o777)
    archive.write("nothing.jar")
    assert not archive.path.exists()
