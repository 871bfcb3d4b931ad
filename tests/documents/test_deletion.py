"""Tests that the times in `docs/guide/deletion.md` are those of the template and the code."""

import re

import pytest

from tools.cost.stack import Template
from tools.cost.write import REPOSITORY

_PAGE = (REPOSITORY / "docs/guide/deletion.md").read_text("utf-8")
#: The page without line breaks.
_TEXT = " ".join(_PAGE.split())
_TEMPLATE = Template(REPOSITORY / "template.yaml")


def _row(begin: str) -> list[str]:
    found = [line for line in _PAGE.splitlines() if line.startswith(f"| {begin}")]
    assert len(found) == 1, f"{len(found)} rows begin with {begin!r}"
    return [cell.strip() for cell in found[0].strip("|").split("|")]


def _resource(name: str) -> str:
    return _TEMPLATE.resources[name]


@pytest.mark.parametrize("table", ["Table", "AccessTable"])
def test_tables_are_recovered_for_35_days_and_stay(table: str) -> None:
    block = _resource(table)
    assert "PointInTimeRecoveryEnabled: true" in block
    assert _TEMPLATE.defaults["RecoveryPeriodInDays"] == "35"
    assert _row("point-in-time recovery of the table")[2] == _row("point-in-time recovery of the access table")[2] == "35 days"
    assert re.search(r"^    DeletionPolicy: Retain", block, re.MULTILINE)
    assert "TimeToLiveSpecification: { AttributeName: ttl, Enabled: true }" in block


def test_what_stays_when_the_stack_is_deleted() -> None:
    stay = {name for name, block in _TEMPLATE.all.items() if re.search(r"^    DeletionPolicy: Retain", block, re.MULTILINE)}
    assert stay == {"Table", "AccessTable", "ArtifactBucket", "ArtifactBucketPolicy"}
    assert "**Both tables and the bucket stay**" in _TEXT


def test_the_stream_has_images_and_the_table_of_access_has_none() -> None:
    assert "StreamViewType: NEW_AND_OLD_IMAGES" in _resource("Table")
    assert "StreamSpecification" not in _resource("AccessTable")
    assert _row("the table's stream")[1:3] == ["old and new images of each changed item, including deleted ones", "24 hours"]


def test_the_bucket_forgets_as_the_page_says() -> None:
    block = _resource("ArtifactBucket")
    everything, answers, archive = block.split("- Id: ")[1:]
    assert "VersioningConfiguration: { Status: Enabled }" in block
    assert re.search(r"NoncurrentDays: (\d+)", everything)[1] + " days" == _row("bucket: deleted and overwritten files")[2]
    assert re.search(r"DaysAfterInitiation: (\d+)", everything)[1] + " days" == _row("bucket: parts of unfinished uploads")[2]
    assert "Prefix: .answers/" in answers
    once, more = (re.search(rf"{name}: (\d+)", answers)[1] for name in ("ExpirationInDays", "NoncurrentDays"))
    assert _row("bucket: responses that were too large")[2] == f"{once} day, and {more} day more as a deleted version"


def test_archived_spans_are_kept_as_the_page_says() -> None:
    archive = _resource("ArtifactBucket").split("- Id: ")[3]
    assert "Prefix: .archive/" in archive and "NoncurrentDays: 1" in archive
    code = (REPOSITORY / "shared/storage/entities/src/archived_objects.rs").read_text("utf-8")
    days = int(re.search(r"DROPPED_OBJECT_RETENTION_MS: i64 = (\d+) \* 24 \* 3_600_000", code)[1])
    assert _row("bucket: archived spans")[2].startswith(f"{days + 2} days")
    # A restored table refers to the objects of its time.
    assert days > int(_TEMPLATE.defaults["RecoveryPeriodInDays"])


def test_the_queue_forgets_as_the_page_says() -> None:
    seconds = re.search(r"MessageRetentionPeriod: (\d+)", _resource("IndexerFailures"))[1]
    assert _row("queue of changes")[2] == f"{int(seconds) // 86400} days"


def test_logs_are_kept_as_the_page_says() -> None:
    groups = _TEMPLATE.of("AWS::Logs::LogGroup").values()
    assert {re.search(r"RetentionInDays: (.+)", block)[1] for block in groups} == {"!Ref LogRetention"}
    assert _row("logs of the functions")[2] == f"{_TEMPLATE.defaults['LogRetention']} days"
    assert "`LogRetention`" in _row("logs of the functions")[3]


def test_backups_are_kept_as_the_page_says() -> None:
    for table, row in (("Table", "point-in-time recovery of the table"), ("AccessTable", "point-in-time recovery of the access table")):
        assert "RecoveryPeriodInDays: !Ref RecoveryPeriodInDays" in _resource(table)
        assert _row(row)[2] == f"{_TEMPLATE.defaults['RecoveryPeriodInDays']} days"
    assert "`RecoveryPeriodInDays`" in _row("point-in-time recovery of the table")[3]


def test_the_longest_of_them_is_said() -> None:
    days = [int(found) for line in _PAGE.split("## Where something remains")[1].split("## On your own machine")[0].splitlines() for found in re.findall(r"\| (\d+) days", line)]
    assert f"**{max(days)} days** are the longest" in _TEXT


@pytest.mark.parametrize(
    ("file", "code", "said"),
    [
        ("functions/auth/src/store/sessions.rs", r"pub const SESSION_SECONDS: u64 = 24 \* 3_600;", "(sessions: 24 hours)"),
        ("functions/traces/src/store/link.rs", r"const STUB_LIFETIME_SECONDS: i64 = 7 \* 86_400;", "They go after a week, by their `ttl`."),
        ("functions/fts-indexer/src/trace_packing/packing_pass.rs", r"const MAX_MARK_AGE_MS: i64 = 86_400_000;", "some minutes later, within 24 hours at the latest"),
        ("shared/storage/artifact-store/src/backend.rs", r"pub const DOWNLOAD_EXPIRATION: Duration = Duration::from_mins\(5\);", "5 minutes, parts of uploads 1 hour"),
        ("shared/storage/artifact-store/src/prefix.rs", r"const PART_URL_EXPIRATION: Duration = Duration::from_hours\(1\);", "5 minutes, parts of uploads 1 hour"),
        ("cli/src/housekeeping.rs", r"const STREAM_RETENTION: Duration = Duration::from_hours\(24\);", "24 hours, checked every five minutes"),
        ("cli/src/housekeeping.rs", r"const ROUND_INTERVAL: Duration = Duration::from_mins\(5\);", "24 hours, checked every five minutes"),
        ("cli/src/housekeeping.rs", r"const ROUNDS_PER_POLICY_RUN: u32 = 12;", "once an hour"),
    ],
)
def test_times_of_the_code_are_those_of_the_page(file: str, code: str, said: str) -> None:
    assert re.search(code, (REPOSITORY / file).read_text("utf-8")), f"{file} has a different time than the page"
    assert said in _PAGE


def test_the_database_does_not_overwrite_what_it_frees() -> None:
    sources = (REPOSITORY / "shared" / "local" / "embedded-engine" / "src").rglob("*.rs")
    assert not any(re.search(r"secure_delete|auto_vacuum", path.read_text("utf-8")) for path in sources)
