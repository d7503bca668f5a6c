"""YAML files: a repeated key is named with its path and lines; merges, anchors and equal keys elsewhere are not."""

import pytest

from isotrace.errors import ConfigError
from isotrace.yamlfile import check_repeated, read_mapping


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("seed: 1\nstudy: a\nseed: 2\n", "seed: given twice, lines 1 and 3"),
        ("a:\n  b: 1\n  c: 2\n  b: 3\n", "a.b: given twice, lines 2 and 4"),
        ("a: [{b: 1}, {c: {d: 1, d: 1}}]\n", "a.1.c.d: given twice, lines 1 and 1"),
        ("x: &x {k: 1,\n  k: 2}\ny: *x\n", "x.k: given twice, lines 1 and 2"),
        ("'a': 1\na: 2\n", "a: given twice, lines 1 and 2"),
    ],
)
def test_a_repeated_key_is_named_with_its_lines(tmp_path, text, says):
    file = tmp_path / "mine.yaml"
    file.write_text(text)
    with pytest.raises(ConfigError) as raised:
        read_mapping(file)
    assert str(raised.value) == f"{file}: {says}; keep one of them"


def test_what_yaml_allows_is_read(tmp_path):
    file = tmp_path / "mine.yaml"
    file.write_text("x: &x {k: 1}\ny: {<<: *x, k: 2}\nz: {<<: *x, <<: {j: 3}}\n1: a\n'1': b\n")
    assert read_mapping(file) == {"x": {"k": 1}, "y": {"k": 2}, "z": {"k": 1, "j": 3}, 1: "a", "1": "b"}


def test_a_node_that_holds_itself_is_no_endless_loop(tmp_path):
    file = tmp_path / "mine.yaml"
    file.write_text("a: &a {b: *a}\n")
    assert list(read_mapping(file)) == ["a"]


def test_files_of_another_kind_are_passed_over(tmp_path):
    (tmp_path / "c.json").write_text('{"a": 1,\n\t"a": 2}')
    check_repeated([tmp_path / "c.json"])


def test_bytes_that_are_no_text_are_one_line(tmp_path):
    (tmp_path / "c.yaml").write_bytes(b"a: \xff\xfe\n")
    with pytest.raises(ConfigError, match=r"c.yaml: cannot be read as YAML") as raised:
        read_mapping(tmp_path / "c.yaml")
    assert "\n" not in str(raised.value)
