"""Tests that the prices in the crate `spans` are those of the installed MLflow."""

from tests.compare.record_prices import TO, lines


def test_prices_are_those_of_mlflow() -> None:
    assert TO.read_text("utf-8").splitlines() == lines(), "run `python -m tests.compare.record_prices`"
