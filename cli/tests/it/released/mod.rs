//! Tables of released versions, which every later version can read and write.
//!
//! The directory `tests/released` has a table and an access table of each release that changed the
//! layout, and responses of that release.
//! `RECORD_RELEASE=0.1.0 cargo nextest run --workspace -E 'test(/^released::records/)'` records
//! them, with the code of that release.

mod filled_table;
mod reads;
mod recorded_tables;
mod two_versions;
mod writes;

use std::collections::BTreeSet;
use std::path::Path;

use artifact_store::ArtifactStore;
use axum::Router;
use axum::extract::Request;
use entities::migration::migrate;
use key_schema::rows::{ROWS, RowDescription};
use key_schema::{Key, access_rows};
use serde_json::Value;
use table::Table;
use test_site::{TestClient, TestEnvironment, key_of};
use tower::ServiceExt;

use crate::faults::packing::timed;
use crate::test_server::{all_as_one, of_table, with_walker};
use reads::{Asked, WORKSPACE, answered};
use recorded_tables::{access_of, answers, load, record, table_of};

/// Environment variable with the name of the release to record.
const RECORD: &str = "RECORD_RELEASE";
/// Releases with recorded tables.
const RELEASES: [&str; 1] = ["0.1.0"];

/// Returns all functions over a table, in processes with empty caches: one without workspaces, and
/// one for requests that name a workspace.
async fn process(site: &TestEnvironment, files: &Path) -> TestClient {
    let around = with_walker(&site.table, ArtifactStore::in_directory(files), all_as_one()).await;
    let plain = domain::mount(&of_table(), &[], &around).await.unwrap();
    let named = domain::mount(&of_table(), &[], &around.with_workspaces()).await.unwrap();
    let answer = move |request: Request| {
        let names_one = request.headers().contains_key(WORKSPACE);
        (if names_one { named } else { plain }).oneshot(request)
    };
    TestClient(Router::new().fallback(answer))
}

/// Returns the row types that have no item in a table and its access table.
fn missing(keys: impl IntoIterator<Item = Key>) -> BTreeSet<&'static str> {
    let found: BTreeSet<_> = keys.into_iter().map(|key| RowDescription::of(&key).unwrap().name).collect();
    let all = ROWS.iter().chain(access_rows::ROWS).map(|row| row.name);
    all.filter(|name| !found.contains(name)).collect()
}

#[test]
fn records_a_release_that_is_asked_for() {
    let Ok(release) = std::env::var(RECORD) else { return };
    timed(async {
        let files = tempfile::tempdir().unwrap();
        let (site, asked) = filled_table::filled(files.path()).await;
        let (items, access) = (table_of(&site).await, access_of(&site).await);
        // The responses must depend only on the table, and not on the caches of the process.
        let site = load(items.clone(), access.clone()).await;
        let answers = answered(&process(&site, files.path()).await, asked).await;
        record(&release, &items, &access, &answers, &missing(items.iter().chain(&access).map(key_of)));
    });
}

/// Row types that were added after 0.1.0: those of webhooks, reviews, issues, MCP servers, skills
/// and single sign-on, of the archive, and of positions in the stream.
const LATER_ROWS: [&str; 38] = [
    "ArchiveRequest",
    "ArchivedObject",
    "ArchivedSegments",
    "ArchivingExperiment",
    "DeadDelivery",
    "Identity",
    "Issue",
    "IssueContent",
    "IssueLocation",
    "IssuePart",
    "IssueTraces",
    "LabelSchema",
    "LabelSchemaName",
    "Login",
    "McpServer",
    "McpServerPermission",
    "McpServerRemoval",
    "McpServerVersion",
    "McpServerVersionPart",
    "Providers",
    "Renewal",
    "ReviewItem",
    "ReviewQueue",
    "ReviewQueueName",
    "ReviewedTrace",
    "Skill",
    "SkillPermission",
    "SkillRemoval",
    "SkillUpload",
    "SkillVersion",
    "StreamPosition",
    "TraceMarkWithSpans",
    "Webhook",
    "WebhookDelivery",
    "WebhookEvent",
    "WebhookEventPart",
    "WebhookQueue",
    "WebhookSubscriptions",
];

#[test]
fn a_table_of_each_release_has_every_row() {
    for release in RELEASES {
        let (items, access) = recorded_tables::released(release);
        let without = recorded_tables::without(release);
        assert!(without.len() < 5, "{release} lacks {without:?}");
        let mut missing = missing(items.iter().chain(&access).map(key_of));
        missing.retain(|row| !LATER_ROWS.contains(row));
        assert_eq!(missing, without.iter().map(String::as_str).collect::<BTreeSet<_>>(), "rows of {release}");
    }
}

/// Removes from a response the fields that releases so far did not return: the aliases of versions
/// in searches.
fn without_later_fields(asked: &Asked, answer: String) -> String {
    if !asked.path.ends_with("/model-versions/search") {
        return answer;
    }
    let mut body: Value = serde_json::from_str(&answer).unwrap();
    for version in body.get_mut("model_versions").and_then(Value::as_array_mut).into_iter().flatten() {
        version.as_object_mut().unwrap().remove("aliases");
    }
    body.to_string()
}

#[test]
fn a_table_of_each_release_is_read_and_written() {
    for release in RELEASES {
        timed(async {
            let files = tempfile::tempdir().unwrap();
            let (items, access) = recorded_tables::released(release);
            let site = load(items, access).await;
            let expected = answers(release);
            assert!(expected.len() > 80, "{} answers", expected.len());
            let check = async |when: &str| {
                let process = process(&site, files.path()).await;
                let mut others = Vec::new();
                for (asked, answer) in &expected {
                    let now = without_later_fields(asked, asked.send(&process).await);
                    if now != *answer {
                        others.push((asked, answer, now));
                    }
                }
                assert!(others.is_empty(), "responses from a table of {release} differ {when}: {others:#?}");
            };
            // During a deployment, functions serve the table before it is migrated.
            check("before the migration").await;
            migrate(&site.table, &Table::new(site.engine.client(), recorded_tables::ACCESS)).await.unwrap().unwrap();
            check("after the migration").await;
            filled_table::follow(&site).await;
            check("after indexing and packing").await;
            let process = process(&site, files.path()).await;
            writes::all(&site, &process).await;
            let mut walk = test_site::route_samples::SampleClient::new(process.0.clone());
            test_site::route_samples::writes(&mut walk).await;
        });
    }
}
