//! The route table: method, path, permission, handler.

use access::Permission::{Create, Delete, Read, Update};
use access::Resource::Webhook;
use service::Route;

use crate::endpoints;
use crate::store::Store;

/// Returns the routes of this function. As in MLflow, only administrators may use them.
#[must_use]
pub fn routes() -> Vec<Route<Store>> {
    vec![
        Route::to::<endpoints::List>("GET", "webhooks", Read(Webhook)),
        Route::to::<endpoints::Create>("POST", "webhooks", Create(Webhook)),
        Route::to::<endpoints::Get>("GET", "webhooks/{webhook_id}", Read(Webhook)),
        Route::to::<endpoints::Update>("PATCH", "webhooks/{webhook_id}", Update(Webhook)),
        Route::to::<endpoints::Delete>("DELETE", "webhooks/{webhook_id}", Delete(Webhook)),
        Route::to::<endpoints::Test>("POST", "webhooks/{webhook_id}/test", Update(Webhook)),
    ]
}
