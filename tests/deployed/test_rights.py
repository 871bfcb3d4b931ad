"""Tests the list of unused permissions, and how it is compared with the recorded calls."""

import pytest

from .rights import LIST, read_list, unused
from .wire import Call


def test_each_right_that_nothing_uses_is_listed_with_its_case():
    listed = read_list(LIST.read_text())
    assert len({right for _, right, _ in listed}) == len(listed)


@pytest.mark.parametrize("line", ["ui | s3:GetObject | BUCKET/*", "ui | s3:GetObject | BUCKET/*  #", "ui | s3:GetObject  # never"])
def test_a_line_without_a_case_is_refused(line: str):
    with pytest.raises(ValueError, match="s3:GetObject"):
        read_list(f"# A comment.\n{line}\n")


def test_actions_and_resources_are_each_looked_for():
    table, index = (f"arn:aws:dynamodb:eu-central-1:123456789012:table/t{below}" for below in ("", "/index/GSI1"))
    roles = {"f": [{"Effect": "Allow", "Action": ["dynamodb:GetItem", "dynamodb:Query"], "Resource": [table, index]}]}
    assert unused(roles, []) == {
        ("f", "dynamodb:GetItem", "table/t table/t/index/GSI1"), ("f", "dynamodb:Query", "table/t table/t/index/GSI1"),
        ("f", "", "table/t"), ("f", "", "table/t/index/GSI1"),
    }
    of_another = Call("g", "dynamodb:GetItem", "table/t")
    queried = Call("f", "dynamodb:Query", "table/t/index/GSI1")
    assert unused(roles, [of_another, queried]) == {("f", "dynamodb:GetItem", "table/t table/t/index/GSI1"), ("f", "", "table/t")}
    assert unused(roles, [queried, Call("f", "dynamodb:GetItem", "table/t")]) == set()
