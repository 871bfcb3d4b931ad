"""Tests that all regions accept the resource types of template.yaml. A region that does not know a
type refuses the whole template, even if the resource's condition is false.
"""

from tools import regions

_TEXT = regions.TEMPLATE.read_text("utf-8")


def test_each_region_knows_all_resource_types() -> None:
    assert len(regions.types(_TEXT)) > 15
    assert regions.missing(_TEXT) == {}


def test_a_type_that_some_regions_lack_is_found() -> None:
    with_budget = f"{_TEXT}\n  Budget:\n    Type: AWS::Budgets::Budget\n"
    lacking = regions.missing(with_budget)
    assert lacking["eu-central-2"] == ["AWS::Budgets::Budget"]
    assert "us-east-1" not in lacking
    assert len(regions.groups(with_budget)) > len(regions.groups(_TEXT))


def test_all_commercial_and_other_partitions_are_known() -> None:
    assert len(regions.schemas()) > 30
    assert {"us-east-1", "eu-central-2", "cn-north-1", "us-gov-west-1"} <= regions.schemas().keys()
    assert sorted(region for group in regions.groups(_TEXT) for region in group) == sorted(regions.schemas())


def test_validation_checks_all_regions() -> None:
    makefile = (regions.TEMPLATE.parent / "Makefile").read_text("utf-8")
    validate = makefile.split("\nvalidate:")[1].split("\n\n")[0]
    assert f"--region {regions.LINTED}" in validate
    assert "python -m tools.regions" in validate
