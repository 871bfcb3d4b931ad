//! Searches of the versions of a server.

use entities::listing::{FirstEntities, ResponsePage};
use futures::stream::TryStreamExt;
use key_schema::{Digest, rows};
use mlflow_api::mcp_servers::{MAX_PAGE, McpSearchParameters, McpStatus, McpVersionsResponse};
use mlflow_api::{McpServerName, McpVersion as Version, Result};
use search::{Fingerprint, McpEntity, McpFields, McpText, McpTime, SortKey, decode_page_token, parse_mcp_search};
use table::Query;

use super::store::Store;
use super::version_row::StoredVersion;

/// A version with the fields that filters and orders use.
struct SearchableVersion<'a> {
    server: &'a str,
    stored: StoredVersion,
}

impl McpFields for SearchableVersion<'_> {
    fn text(&self, field: McpText) -> Option<&str> {
        match field {
            McpText::Name => Some(self.server),
            McpText::Status => Some(self.stored.status.name()),
            McpText::Version => Some(self.stored.version.as_str()),
            McpText::DisplayName | McpText::TransportType | McpText::Id => None,
        }
    }

    fn time(&self, field: McpTime) -> i64 {
        match field {
            McpTime::Created => self.stored.created,
            McpTime::Updated => self.stored.updated,
        }
    }

    fn version(&self) -> Option<&Version> {
        Some(&self.stored.version)
    }
}

impl Store {
    /// Searches the versions of a server. A server that does not exist has none. Takes one request,
    /// one per MB of the rows of all versions, and one for each large version of the page.
    pub async fn version_search(
        &self,
        name: Option<&access::Granted<McpServerName>>,
        search: &McpSearchParameters,
    ) -> Result<McpVersionsResponse> {
        let page_size = search.page_size(MAX_PAGE)?;
        let of = name.map(|name| name.as_str()).unwrap_or_default();
        let fingerprint = Fingerprint::of_mcp_search(&["versions", of], &search.filter, &search.order_by);
        let after: Option<SortKey> = decode_page_token(fingerprint, &search.page_token)?;
        let (filter, order) = parse_mcp_search(McpEntity::Version, &search.filter, &search.order_by)?;
        let mut page = ResponsePage::new(page_size);
        let server = match name {
            Some(name) => self.server_find(name).await?,
            None => None,
        };
        let Some(server) = server else {
            let (mcp_server_versions, next_page_token) = page.finish(fingerprint)?;
            return Ok(McpVersionsResponse { mcp_server_versions, next_page_token });
        };
        let mut first = FirstEntities::new(page_size);
        let versions = Query::of(rows::McpServerVersion::all(&Digest(server.id)));
        let mut pages = std::pin::pin!(entities::listing::pages(&self.table, versions));
        while let Some(items) = pages.try_next().await? {
            for item in items {
                let version = SearchableVersion { server: server.name.as_str(), stored: StoredVersion::of(item)? };
                if version.stored.status == McpStatus::Deleted || !filter.matches(&version) {
                    continue;
                }
                let key = order.key(&version);
                if after.as_ref().is_none_or(|after| key > *after) {
                    let bytes = version.stored.content_size();
                    first.add(key, version.stored, bytes);
                }
            }
        }
        let found = first.finish();
        let has_more = found.has_more();
        for (key, version, bytes) in found.entities {
            if !page.has_room_for(bytes) || !page.add(key, &self.version_answer(&server, &version).await?)? {
                break;
            }
        }
        if has_more {
            page.ends_here();
        }
        let (mcp_server_versions, next_page_token) = page.finish(fingerprint)?;
        Ok(McpVersionsResponse { mcp_server_versions, next_page_token })
    }
}
