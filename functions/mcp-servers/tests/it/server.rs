//! A server for tests, which runs the function over a private table.

use std::ops::Deref;

use serde_json::{Value, json};
use table::Table;
use test_site::{PrefixedTestClient, TestEnvironment, TestResponse};

/// A server process.
#[derive(Clone)]
pub(crate) struct Server(PrefixedTestClient);

impl Deref for Server {
    type Target = PrefixedTestClient;

    fn deref(&self) -> &PrefixedTestClient {
        &self.0
    }
}

/// Returns an environment with an empty table, and a server over it.
pub(crate) async fn site() -> (TestEnvironment, Server) {
    let site = TestEnvironment::new().await;
    let server = Server::on(&site.table);
    (site, server)
}

impl Server {
    pub(crate) fn on(table: &Table) -> Self {
        let store = mcp_servers::store::Store::new(table.clone());
        Self(PrefixedTestClient::new(
            mcp_servers::router(&store, test_site::everybody()),
            "/api/3.0/mlflow/mcp-servers",
        ))
    }

    /// Creates a server without versions.
    pub(crate) async fn create(&self, name: &str) -> Value {
        self.send("POST", "", json!({ "name": name })).await.ok()
    }

    /// Creates a version of a server.
    pub(crate) async fn version(&self, server: &str, version: &str, status: &str) -> Value {
        let body = json!({ "server_json": server_json(server, version), "status": status });
        self.send("POST", &format!("/{server}/versions"), body).await.ok()
    }

    /// Changes the status of a version.
    pub(crate) async fn set_status(&self, server: &str, version: &str, status: &str) -> TestResponse {
        self.send("PATCH", &format!("/{server}/versions/{version}"), json!({ "status": status })).await
    }

    /// Returns a server.
    pub(crate) async fn get_server(&self, name: &str) -> Value {
        self.read(&format!("/{name}"), &[]).await.ok()
    }

    /// Returns the latest version of a server and its status.
    pub(crate) async fn latest(&self, name: &str) -> (Value, Value) {
        let server = self.get_server(name).await;
        (server["latest_version"].clone(), server["status"].clone())
    }
}

/// Returns the `server.json` of a version.
pub(crate) fn server_json(server: &str, version: &str) -> Value {
    json!({ "name": server, "version": version, "description": format!("description of {version}") })
}

/// Returns a text that hardly compresses, of this many bytes.
pub(crate) fn noise(bytes: usize) -> String {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        char::from(b'a' + u8::try_from(state % 26).unwrap())
    };
    (0..bytes).map(|_| next()).collect()
}
