//! Searches of servers.

use access::{Guard, Resource, Visibility};
use entities::listing::{CooperativeYield, FirstEntities, ReadBudget, ResponsePage};
use key_schema::rows;
use mlflow_api::mcp_servers::{MAX_PAGE_OF_SERVERS, McpSearchParameters, McpServer, McpServersResponse, McpStatus};
use mlflow_api::{McpServerName, Result};
use search::{
    Fingerprint, McpEntity, McpFields, McpFilter, McpOrder, McpText, McpTime, SortKey, decode_page_token,
    parse_mcp_search,
};
use table::Query;

use super::server_document::StoredServer;
use super::store::Store;

/// A server with the fields that filters and orders use.
pub(super) struct SearchableServer(pub(super) StoredServer);

impl McpFields for SearchableServer {
    fn text(&self, field: McpText) -> Option<&str> {
        match field {
            McpText::Name => Some(self.0.name.as_str()),
            McpText::DisplayName => self.0.display_name.as_deref(),
            McpText::Status => self.0.latest.as_ref().map(|latest| McpStatus::name(latest.status)),
            McpText::Version | McpText::TransportType | McpText::Id => None,
        }
    }

    fn time(&self, field: McpTime) -> i64 {
        match field {
            McpTime::Created => self.0.created,
            McpTime::Updated => self.0.updated,
        }
    }

    fn has_endpoints(&self) -> bool {
        !self.0.endpoints.is_empty()
    }

    fn tag(&self, key: &str) -> Option<&str> {
        self.0.tags.get(key).map(String::as_str)
    }
}

/// The conditions that a server has to meet to be on a page.
struct ServerCriteria<'a> {
    visible: &'a Visibility,
    filter: McpFilter,
    order: McpOrder,
    after: Option<SortKey>,
}

impl ServerCriteria<'_> {
    /// Returns the sort key of a server if it matches the search and comes after the previous page.
    fn key(&self, server: &SearchableServer) -> Option<SortKey> {
        let is_shown = self.visible.shows_as(Resource::McpServer, &Guard::McpServer(server.0.name.clone()));
        if !is_shown || !self.filter.matches(server) {
            return None;
        }
        let key = self.order.key(server);
        self.after.as_ref().is_none_or(|after| key > *after).then_some(key)
    }
}

impl Store {
    /// Searches servers.
    ///
    /// If the results are sorted by name, which is the default, reads only as many documents as the
    /// page needs: one read unit per about 20 servers without long texts. With any other order,
    /// reads all documents of the workspace. Each server on the page that has access endpoints
    /// takes one more request, and one for each large version of its access endpoints.
    pub async fn server_search(
        &self,
        visible: &Visibility,
        search: &McpSearchParameters,
        complete: impl Fn(&McpServerName, &mut McpServer),
        with_versions: impl Fn(&McpServerName) -> bool,
    ) -> Result<McpServersResponse> {
        let page_size = search.page_size(MAX_PAGE_OF_SERVERS)?;
        let fingerprint = Fingerprint::of_mcp_search(&["servers"], &search.filter, &search.order_by);
        let after: Option<SortKey> = decode_page_token(fingerprint, &search.page_token)?;
        let (filter, order) = parse_mcp_search(McpEntity::Server, &search.filter, &search.order_by)?;
        let in_order = order.is_by_name();
        let reading = ReadBudget::default();
        let store = Self { table: reading.of(&self.table), ..self.clone() };
        let workspace = self.authorizer_writes.workspace();
        let range = rows::McpServer::all(&workspace.as_str().into()).range();
        let range = match after.as_ref().and_then(SortKey::first_text).filter(|_| in_order) {
            Some(name) => range.after(name),
            None => range,
        };
        // The query is limited to the page size only if every document is shown. A filter or hidden
        // servers may exclude many documents.
        let reads_page = in_order && filter.is_empty() && matches!(visible, Visibility::Everything);
        let query = Query::of(range);
        let mut query = if reads_page { query.limit(page_size + 1) } else { query };
        let criteria = ServerCriteria { visible, filter, order, after };
        let (mut page, mut first) = (ResponsePage::new(page_size), FirstEntities::new(page_size));
        let mut yielding = CooperativeYield::default();
        'reading: loop {
            let read = store.table.query_page(&query).await?;
            for item in read.items {
                yielding.keep().await;
                let bytes = item.size();
                let server = SearchableServer(StoredServer::of(item)?);
                let Some(key) = criteria.key(&server) else { continue };
                if !in_order {
                    first.add(key, server, bytes);
                } else if !page.has_room_for(bytes)
                    || !store.add(&mut page, key, &server, &complete, &with_versions).await?
                {
                    break 'reading;
                }
            }
            match read.next {
                Some(_) if in_order && reading.is_used_up() && !page.is_empty() => {
                    page.ends_here();
                    break;
                }
                Some(next) => query = query.starting_at(next),
                None => break,
            }
        }
        let found = first.finish();
        let has_more = found.has_more();
        for (key, server, _) in found.entities {
            if !store.add(&mut page, key, &server, &complete, &with_versions).await? {
                break;
            }
        }
        if has_more {
            page.ends_here();
        }
        let (mcp_servers, next_page_token) = page.finish(fingerprint)?;
        Ok(McpServersResponse { mcp_servers, next_page_token })
    }

    /// Adds a server to a page if the page has room for it. Returns whether it was added.
    async fn add(
        &self,
        page: &mut ResponsePage<SortKey>,
        key: SortKey,
        SearchableServer(server): &SearchableServer,
        complete: &impl Fn(&McpServerName, &mut McpServer),
        with_versions: &impl Fn(&McpServerName) -> bool,
    ) -> Result<bool> {
        let mut answer = self.server_answer(server, with_versions(&server.name)).await?;
        complete(&server.name, &mut answer);
        page.add(key, &answer)
    }
}
