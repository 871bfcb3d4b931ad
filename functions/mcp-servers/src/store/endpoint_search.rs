//! Searches of access endpoints.

use std::sync::Arc;

use access::{Granted, Guard, Resource, Visibility};
use entities::listing::{CooperativeYield, FirstEntities, ResponsePage};
use futures::stream::TryStreamExt;
use key_schema::rows;
use mlflow_api::mcp_servers::{
    AccessEndpoint, EndpointTargets, MAX_PAGE, McpEndpointsResponse, McpSearchParameters, McpStatus,
};
use mlflow_api::{McpServerName, Result};
use search::{
    Fingerprint, McpEntity, McpFields, McpFilter, McpOrder, McpText, McpTime, SortKey, decode_page_token,
    parse_mcp_search,
};
use table::Query;

use super::server_document::{StoredEndpoint, StoredServer};
use super::store::Store;

/// An access endpoint with the fields that filters and orders use.
struct SearchableEndpoint {
    server: Arc<StoredServer>,
    id: String,
    stored: StoredEndpoint,
    /// Status of the endpoint's version, if the filter uses it and the caller may read versions.
    status: Option<McpStatus>,
}

impl McpFields for SearchableEndpoint {
    fn text(&self, field: McpText) -> Option<&str> {
        match field {
            McpText::Name => Some(self.server.name.as_str()),
            McpText::Status => self.status.map(McpStatus::name),
            McpText::TransportType => Some(&self.stored.transport),
            McpText::Id => Some(&self.id),
            McpText::Version | McpText::DisplayName => None,
        }
    }

    fn time(&self, field: McpTime) -> i64 {
        match field {
            McpTime::Created => self.stored.created,
            McpTime::Updated => self.stored.updated,
        }
    }
}

/// The state of a search of access endpoints while it reads servers.
struct EndpointSearch<'a, F> {
    store: &'a Store,
    targets: &'a EndpointTargets,
    filter: McpFilter,
    order: McpOrder,
    after: Option<SortKey>,
    fingerprint: Fingerprint,
    first: FirstEntities<SortKey, SearchableEndpoint>,
    page_size: usize,
    uses_status: bool,
    with_versions: F,
}

impl<'a, F: Fn(&McpServerName) -> bool> EndpointSearch<'a, F> {
    fn new(
        store: &'a Store,
        of: &str,
        targets: &'a EndpointTargets,
        search: &McpSearchParameters,
        with_versions: F,
    ) -> Result<Self> {
        let page_size = search.page_size(MAX_PAGE)?;
        let target = |text: &Option<String>| text.as_ref().map(|text| format!("={text}")).unwrap_or_default();
        let (version, alias) = (target(&targets.server_version), target(&targets.server_alias));
        let of = ["endpoints", of, &version, &alias];
        let fingerprint = Fingerprint::of_mcp_search(&of, &search.filter, &search.order_by);
        let after = decode_page_token(fingerprint, &search.page_token)?;
        let (filter, order) = parse_mcp_search(McpEntity::Endpoint, &search.filter, &search.order_by)?;
        Ok(Self {
            store,
            targets,
            filter,
            order,
            after,
            fingerprint,
            first: FirstEntities::new(page_size),
            page_size,
            uses_status: search.filter.contains("status"),
            with_versions,
        })
    }

    /// Adds the access endpoints of a server that match the search. Takes one request for their
    /// versions if the filter uses the status.
    async fn add(&mut self, server: StoredServer) -> Result<()> {
        if server.endpoints.is_empty() {
            return Ok(());
        }
        let server = Arc::new(server);
        let EndpointTargets { server_version, server_alias } = self.targets;
        let is_target = |wanted: &Option<String>, own: &Option<String>| wanted.is_none() || wanted == own;
        let wanted = server.endpoints.iter().filter(|(_, endpoint)| {
            is_target(server_version, &endpoint.version) && is_target(server_alias, &endpoint.alias)
        });
        let wanted: Vec<_> = wanted.collect();
        let reads = self.uses_status && (self.with_versions)(&server.name);
        let versions = wanted.iter().filter_map(|(_, endpoint)| server.version_of_endpoint(endpoint));
        let mut versions: Vec<_> = versions.filter(|_| reads).collect();
        versions.sort_unstable();
        versions.dedup();
        let rows = self.store.version_rows(&server, versions.into_iter()).await?;
        for (id, endpoint) in wanted {
            let row = server.version_of_endpoint(endpoint).and_then(|version| rows.get(version));
            let found = SearchableEndpoint {
                server: Arc::clone(&server),
                id: id.clone(),
                stored: endpoint.clone(),
                status: row.map(|row| row.status),
            };
            let key = self.order.key(&found);
            if self.filter.matches(&found) && self.after.as_ref().is_none_or(|after| key > *after) {
                let bytes = found.stored.url.len();
                self.first.add(key, found, bytes);
            }
        }
        Ok(())
    }

    async fn finish(self) -> Result<McpEndpointsResponse> {
        let mut page = ResponsePage::new(self.page_size);
        let found = self.first.finish();
        let has_more = found.has_more();
        for (key, SearchableEndpoint { server, id, stored, .. }, _) in found.entities {
            let with_version = (self.with_versions)(&server.name);
            let endpoints = self.store.endpoints_of(&server, [(&id, &stored)].into_iter(), with_version).await?;
            let Some(endpoint) = endpoints.into_iter().next() else { continue };
            if !page.add(key, &AccessEndpoint::from(endpoint))? {
                break;
            }
        }
        if has_more {
            page.ends_here();
        }
        let (mcp_access_endpoints, next_page_token) = page.finish(self.fingerprint)?;
        Ok(McpEndpointsResponse { mcp_access_endpoints, next_page_token })
    }
}

impl Store {
    /// Searches the access endpoints of a server. A server that does not exist has none. Takes one
    /// request, one more if the filter uses the status, and one or two for each endpoint of the
    /// page.
    pub async fn endpoint_search_of(
        &self,
        name: Option<&Granted<McpServerName>>,
        targets: &EndpointTargets,
        search: &McpSearchParameters,
        with_versions: impl Fn(&McpServerName) -> bool,
    ) -> Result<McpEndpointsResponse> {
        let of = name.map(|name| name.as_str()).unwrap_or_default();
        let mut found = EndpointSearch::new(self, of, targets, search, with_versions)?;
        if let Some(name) = name
            && let Some(server) = self.server_find(name).await?
        {
            found.add(server).await?;
        }
        found.finish().await
    }

    /// Searches the access endpoints of all servers that the caller may read. Takes one request per
    /// MB of documents, one for each server with endpoints if the filter uses the status, and one or
    /// two for each endpoint of the page.
    pub async fn endpoint_search(
        &self,
        visible: &Visibility,
        targets: &EndpointTargets,
        search: &McpSearchParameters,
        with_versions: impl Fn(&McpServerName) -> bool,
    ) -> Result<McpEndpointsResponse> {
        let mut found = EndpointSearch::new(self, "", targets, search, with_versions)?;
        let workspace = self.authorizer_writes.workspace();
        let servers = Query::of(rows::McpServer::all(&workspace.as_str().into()));
        let mut pages = std::pin::pin!(entities::listing::pages(&self.table, servers));
        let mut pace = CooperativeYield::default();
        while let Some(items) = pages.try_next().await? {
            for item in items {
                pace.keep().await;
                let server = StoredServer::of(item)?;
                if visible.shows_as(Resource::McpServer, &Guard::McpServer(server.name.clone())) {
                    found.add(server).await?;
                }
            }
        }
        found.finish().await
    }
}
