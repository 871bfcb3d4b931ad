//! Exports skills.

use entities::listing;
use futures::stream::TryStreamExt;
use key_schema::rows;
use rusqlite::params;
use table::{Item, Query};

use super::table_reader;
use crate::Failure;
use crate::transfer::export::ExportContext;

/// Exports the skills of all workspaces, unless only one experiment is exported. Takes one request
/// per MB of the skills of a workspace, and one per MB of the versions of a skill.
///
/// # Errors
/// The table cannot be read, or the file cannot be written.
pub(crate) async fn export(context: &ExportContext) -> Result<(), Failure> {
    for workspace in context.workspaces().await? {
        let skills = Query::of(rows::Skill::all(&workspace.as_str().into()));
        let mut pages = std::pin::pin!(listing::pages(&context.table, skills));
        while let Some(page) = pages.try_next().await.map_err(|failure| format!("cannot read skills: {failure:?}"))? {
            for document in page {
                context.require_newest_schema("earlier versions have no skills");
                export_skill(context, document).await?;
            }
        }
    }
    Ok(())
}

async fn export_skill(context: &ExportContext, document: Item) -> Result<(), Failure> {
    let record = table_reader::record(&context.table, document).await?;
    let (workspace, organization, name) = (record.workspace.as_str(), record.name.organization(), record.name.name());
    context.insert(
        "INSERT INTO skills (workspace, organization, name, description, icons, search_text, created_by, \
         last_updated_by, created_at, last_updated_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        params![
            workspace,
            organization,
            name,
            record.description,
            record.icons,
            search_text(name, record.description.as_deref()),
            record.created_by,
            record.updated_by,
            record.created,
            record.updated,
        ],
    )?;
    for (number, version) in &record.versions {
        context.insert(
            "INSERT INTO skill_versions (workspace, organization, name, version, source_type, source, ref, subpath, \
             digest, status, created_by, last_updated_by, created_at, last_updated_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, \
             ?, ?, ?, ?, ?)",
            params![
                workspace,
                organization,
                name,
                number,
                version.source.kind.name(),
                version.source.location,
                version.source.reference,
                version.source.subpath,
                version.digest,
                version.status.name(),
                version.created_by,
                version.updated_by,
                version.created,
                version.updated,
            ],
        )?;
        for (key, value) in &version.tags {
            let sql = "INSERT INTO skill_version_tags (workspace, organization, name, version, \"key\", value) VALUES \
                       (?, ?, ?, ?, ?, ?)";
            context.insert(sql, params![workspace, organization, name, number, key, value])?;
        }
    }
    for (key, value) in &record.tags {
        let sql = "INSERT INTO skill_tags (workspace, organization, name, \"key\", value) VALUES (?, ?, ?, ?, ?)";
        context.insert(sql, params![workspace, organization, name, key, value])?;
    }
    for (alias, version) in &record.aliases {
        let sql = "INSERT INTO skill_aliases (workspace, organization, name, alias, version) VALUES (?, ?, ?, ?, ?)";
        context.insert(sql, params![workspace, organization, name, alias, version])?;
    }
    Ok(())
}

/// Returns the text in which MLflow searches for skills: the name and the description, without
/// superfluous whitespace.
fn search_text(name: &str, description: Option<&str>) -> String {
    name.split_whitespace().chain(description.unwrap_or_default().split_whitespace()).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whitespace_is_not_searched() {
        assert_eq!(search_text("review", None), "review");
        assert_eq!(search_text("review", Some(" Reads\n\n code ")), "review Reads code");
    }
}
