//! Searches of servers.

use access::{Guard, Resource, Visibility};
use entities::listing::{DocumentSearch, ReadBudget, SearchedDocuments};
use key_schema::rows;
use mlflow_api::mcp_servers::{MAX_PAGE_OF_SERVERS, McpSearchParameters, McpServer, McpServersResponse, McpStatus};
use mlflow_api::{McpServerName, Result};
use search::{
    Fingerprint, McpEntity, McpFields, McpFilter, McpOrder, McpText, McpTime, SortKey, decode_page_token,
    parse_mcp_search,
};
use table::Item;

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
struct ServerCriteria<'a, F, V> {
    store: Store,
    visible: &'a Visibility,
    filter: McpFilter,
    order: McpOrder,
    after: Option<SortKey>,
    /// Adds what depends on the caller to a server on the page.
    complete: F,
    /// Checks whether the caller may see the versions of a server.
    with_versions: V,
}

impl<F, V> ServerCriteria<'_, F, V> {
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

impl<F, V> SearchedDocuments for ServerCriteria<'_, F, V>
where
    F: Fn(&McpServerName, &mut McpServer) + Sync,
    V: Fn(&McpServerName) -> bool + Sync,
{
    type Document = SearchableServer;
    type Entity = McpServer;

    fn read(&self, item: Item) -> Result<Option<(SortKey, SearchableServer)>> {
        let server = SearchableServer(StoredServer::of(item)?);
        Ok(self.key(&server).map(|key| (key, server)))
    }

    async fn complete(&self, SearchableServer(server): &SearchableServer) -> Result<McpServer> {
        let mut answer = self.store.server_answer(server, (self.with_versions)(&server.name)).await?;
        (self.complete)(&server.name, &mut answer);
        Ok(answer)
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
        complete: impl Fn(&McpServerName, &mut McpServer) + Sync,
        with_versions: impl Fn(&McpServerName) -> bool + Sync,
    ) -> Result<McpServersResponse> {
        let page_size = search.page_size(MAX_PAGE_OF_SERVERS)?;
        let fingerprint = Fingerprint::of_mcp_search(&["servers"], &search.filter, &search.order_by);
        let after: Option<SortKey> = decode_page_token(fingerprint, &search.page_token)?;
        let (filter, order) = parse_mcp_search(McpEntity::Server, &search.filter, &search.order_by)?;
        let documents = DocumentSearch {
            range: rows::McpServer::all(&self.authorizer_writes.workspace().as_str().into()).range(),
            after: after.clone(),
            in_order: order.is_by_name(),
            may_refuse: !filter.is_empty() || !matches!(visible, Visibility::Everything),
            page_size,
        };
        let reading = ReadBudget::default();
        let table = reading.of(&self.table);
        let store = Self { table: table.clone(), ..self.clone() };
        let criteria = ServerCriteria { store, visible, filter, order, after, complete, with_versions };
        let page = documents.page(&criteria, &table, &reading).await?;
        let (mcp_servers, next_page_token) = page.finish(fingerprint)?;
        Ok(McpServersResponse { mcp_servers, next_page_token })
    }
}
