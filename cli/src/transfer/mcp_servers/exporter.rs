//! Exports MCP servers.

use std::fmt::Write;

use entities::listing;
use futures::stream::TryStreamExt;
use key_schema::rows;
use rusqlite::params;
use table::{Item, Query};

use super::table_reader;
use crate::Failure;
use crate::transfer::export::ExportContext;

/// Exports the MCP servers of all workspaces, unless only one experiment is exported. Takes one
/// request per MB of the servers of a workspace, one per MB of the versions of a server, and one
/// for each large version.
///
/// # Errors
/// The table cannot be read, or the file cannot be written.
pub(crate) async fn export(context: &ExportContext) -> Result<(), Failure> {
    for workspace in context.workspaces().await? {
        let servers = Query::of(rows::McpServer::all(&workspace.as_str().into()));
        let mut pages = std::pin::pin!(listing::pages(&context.table, servers));
        while let Some(page) =
            pages.try_next().await.map_err(|failure| format!("cannot read MCP servers: {failure:?}"))?
        {
            for document in page {
                export_server(context, document).await?;
            }
        }
    }
    Ok(())
}

async fn export_server(context: &ExportContext, document: Item) -> Result<(), Failure> {
    let record = table_reader::record(&context.table, document).await?;
    let (workspace, name) = (record.workspace.as_str(), record.name.as_str());
    context.insert(
        "INSERT INTO mcp_servers (workspace, name, display_name, description, icons, created_by, last_updated_by, \
         created_at, last_updated_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        params![
            workspace,
            name,
            record.display_name,
            record.description,
            record.icons,
            record.created_by,
            record.updated_by,
            record.created,
            record.updated,
        ],
    )?;
    for (text, version) in &record.versions {
        let ([major, minor, patch], prerelease) = sort_key(text);
        context.insert(
            "INSERT INTO mcp_server_versions (workspace, name, version, version_major, version_minor, version_patch, \
             version_prerelease_sort_key, server_json, status, tools, source, connect_options, created_by, \
             last_updated_by, created_at, last_updated_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            params![
                workspace,
                name,
                text,
                major,
                minor,
                patch,
                prerelease,
                version.server_json,
                version.status,
                version.tools,
                version.source,
                version.connect_options,
                version.created_by,
                version.updated_by,
                version.created,
                version.updated,
            ],
        )?;
        for (key, value) in &version.tags {
            let sql =
                "INSERT INTO mcp_server_version_tags (workspace, name, version, \"key\", value) VALUES (?, ?, ?, ?, ?)";
            context.insert(sql, params![workspace, name, text, key, value])?;
        }
    }
    for (key, value) in &record.tags {
        let sql = "INSERT INTO mcp_server_tags (workspace, name, \"key\", value) VALUES (?, ?, ?, ?)";
        context.insert(sql, params![workspace, name, key, value])?;
    }
    for (alias, version) in &record.aliases {
        let sql = "INSERT INTO mcp_server_aliases (workspace, name, alias, version) VALUES (?, ?, ?, ?)";
        context.insert(sql, params![workspace, name, alias, version])?;
    }
    for (id, endpoint) in &record.endpoints {
        context.insert(
            "INSERT INTO mcp_access_endpoints (id, workspace, server_name, server_version, server_alias, url, \
             transport_type, created_by, last_updated_by, created_at, last_updated_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, \
             ?, ?)",
            params![
                id,
                workspace,
                name,
                endpoint.version,
                endpoint.alias,
                endpoint.url,
                endpoint.transport,
                endpoint.created_by,
                endpoint.updated_by,
                endpoint.created,
                endpoint.updated,
            ],
        )?;
    }
    Ok(())
}

/// Returns the values of the columns by which MLflow sorts versions: the three numbers of the
/// version, and a sort key for its prerelease. In the sort key, an identifier that consists of
/// digits is encoded as `0`, its length and its digits, and any other identifier as `1` and the
/// codes of its characters, so that numbers come first and are sorted by value. A version without a
/// prerelease has the sort key `2`, and thus comes after its prereleases.
fn sort_key(version: &str) -> ([i64; 3], String) {
    let without_build = version.split('+').next().unwrap_or_default();
    let (numbers, prerelease) = match without_build.split_once('-') {
        Some((numbers, prerelease)) => (numbers, Some(prerelease)),
        None => (without_build, None),
    };
    let mut parts = numbers.split('.').map(|number| number.parse().unwrap_or_default());
    let numbers = [(); 3].map(|()| parts.next().unwrap_or_default());
    let Some(prerelease) = prerelease else { return (numbers, "2".to_owned()) };
    let mut key = String::new();
    for identifier in prerelease.split('.') {
        if identifier.bytes().all(|byte| byte.is_ascii_digit()) {
            let _ = write!(key, "0{:03}{identifier}", identifier.len());
        } else {
            key.push('1');
            for byte in identifier.bytes() {
                let _ = write!(key, "{byte:03}");
            }
            key.push_str("000");
        }
    }
    (numbers, key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_sorted_as_in_mlflow() {
        for (version, numbers, key) in [
            ("1.2.3", [1, 2, 3], "2"),
            ("1.2.3-rc.1", [1, 2, 3], "111409900000011"),
            ("10.0.0-alpha.beta.11+x.y-z", [10, 0, 0], "10971081121040970001098101116097000000211"),
            ("1.0.0-0", [1, 0, 0], "00010"),
        ] {
            assert_eq!(sort_key(version), (numbers, key.to_owned()), "{version}");
        }
    }
}
