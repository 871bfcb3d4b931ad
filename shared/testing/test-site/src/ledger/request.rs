//! Requests as a store's caller parses and authorizes them.

use access::{AllowAll, Identity, Needs, Scope};
use mlflow_api::Request;
use serde_json::Value;
use table::Table;

/// Returns a request with a JSON body.
pub fn json_request(body: &Value) -> Request {
    let content_type = Some("application/json".to_owned());
    Request { method: "POST".to_owned(), content_type, body: body.to_string().into_bytes(), ..Request::default() }
}

/// Returns the scope of a request of a caller with full access.
pub async fn allowed_scope(table: &Table, needs: &Needs) -> Scope {
    Scope::enter(&AllowAll::shared(), Identity::anonymous(), table, needs).await.unwrap()
}
