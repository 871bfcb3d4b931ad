//! Compares the archive of a stack with its table (`doctor --archive`).

use std::collections::BTreeSet;

use artifact_store::ArtifactStore;
use entities::layout;
use entities::workspaces::Workspaces;
use key_schema::Key;
use mlflow_api::ArchiveObject;
use retention::{ArchiveDifferences, Retention};
use table::Table;

use super::checks::{Finding, finding};
use super::stack_facts::StackDescription;
use crate::Failure;

/// Returns the differences between the archive and the references to it. Reads all blocks of traces, and
/// sends a request for each run. Uses the region and the credentials of the AWS configuration.
pub(super) async fn findings(region: &str, stack: &StackDescription) -> Vec<Finding> {
    let (table, destination) = (stack.output("TableName"), stack.artifact_root());
    match compare(table, &destination).await {
        Ok(differences) => findings_of(&differences, &destination, &list_command(region, table, &destination)),
        Err(error) => vec![finding(
            format!("The archive could not be compared with the table: {error}."),
            "The caller needs dynamodb:GetItem and Query, and s3:GetObject and ListBucket.",
        )],
    }
}

async fn compare(table: &str, destination: &str) -> Result<ArchiveDifferences, Failure> {
    let table = Table::new(table::client(None).await?, table).in_background();
    layout::of(&table).await?;
    let names = Workspaces::new(table.clone()).names().await.map_err(crate::gc::failed)?;
    let retention = Retention::new(table, ArtifactStore::below(destination)).without_archive();
    retention.check_archive(&names).await.map_err(crate::gc::failed)
}

/// Returns the command that lists all differences.
fn list_command(region: &str, table: &str, destination: &str) -> String {
    format!(
        "mlflow-serverless gc --check-archive --dynamodb-endpoint https://dynamodb.{region}.amazonaws.com --table {table} \
         --artifacts-destination {destination}"
    )
}

/// Returns one finding for missing objects, and one for objects without a reference.
pub(super) fn findings_of(differences: &ArchiveDifferences, destination: &str, list: &str) -> Vec<Finding> {
    let folder = format!("{destination}/.archive");
    let missing =
        differences.missing.first_key_value().map(|first| missing(first, differences.missing.len(), &folder, list));
    missing.into_iter().chain(orphaned(&differences.orphaned, &folder, list)).collect()
}

fn missing((object, referrer): (&ArchiveObject, &Key), count: usize, folder: &str, list: &str) -> Finding {
    let are = if count == 1 { "object of the archive is" } else { "objects of the archive are" };
    finding(
        format!("{count} {are} missing, for example {object}, to which the item {} refers.", referrer.text()),
        format!(
            "The spans or points in such an object cannot be read. Look for an earlier version below {folder}/ with `aws s3api \
             list-object-versions`. `{list}` lists all missing objects."
        ),
    )
}

fn orphaned(orphaned: &BTreeSet<ArchiveObject>, folder: &str, list: &str) -> Option<Finding> {
    let object = orphaned.first()?;
    let count = orphaned.len();
    let are = if count == 1 { "object of the archive is" } else { "objects of the archive are" };
    Some(finding(
        format!("{count} {are} not referenced, for example {object}."),
        format!(
            "This happens if the table was restored to an earlier time. If no other table refers to the bucket, delete the object: \
             `aws s3 rm {folder}/{object}`. `{list}` lists all of them."
        ),
    ))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn differences_are_summarized() {
        let object = ArchiveObject::new;
        let key = |sk: &str| Key { pk: "RUN#1".to_owned(), sk: sk.to_owned() };
        let found = |orphaned: &[u128], missing: &[u128]| {
            let orphaned = orphaned.iter().map(|number| object(*number)).collect();
            let missing: BTreeMap<_, _> = missing.iter().map(|number| (object(*number), key("list"))).collect();
            let found = findings_of(&ArchiveDifferences { orphaned, missing }, "s3://files/deep", "gc");
            found.into_iter().map(|Finding { what, remedy }| format!("{what} {remedy}")).collect::<Vec<_>>()
        };
        assert!(found(&[], &[]).is_empty());
        let both = found(&[10, 11], &[12]);
        let (ten, twelve) = (object(10), object(12));
        let expected =
            format!("1 object of the archive is missing, for example {twelve}, to which the item RUN#1 list refers.");
        assert!(both[0].starts_with(&expected), "{}", both[0]);
        assert!(
            both[1].starts_with(&format!("2 objects of the archive are not referenced, for example {ten}.")),
            "{}",
            both[1]
        );
        assert!(both[1].contains(&format!("`aws s3 rm s3://files/deep/.archive/{ten}`")), "{}", both[1]);
        assert_eq!((both.len(), found(&[1], &[]).len(), found(&[], &[1, 2]).len()), (2, 1, 1));
    }
}
