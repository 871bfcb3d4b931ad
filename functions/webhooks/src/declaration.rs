//! The declaration of the domain: its function in the stack, and how it is mounted.

use std::sync::Arc;

use domain::{
    Domain, DomainApi, Environment, EnvironmentSetting, Function, Indexes, MountFailure, TableActions, TableRights,
};
use entities::webhooks::{DelivererFailure, LambdaDeliverer};
use outbound::OutboundClient;
use service::Route;

use crate::store::Store;

/// The webhooks domain.
pub const DOMAIN: Domain = Domain::of::<Webhooks>(Function {
    name: "webhooks",
    resource: "Webhooks",
    description: "Webhooks: which events are sent to which addresses.",
    paths: &[
        "/api/2.0/mlflow/webhooks",
        "/ajax-api/2.0/mlflow/webhooks",
        "/api/2.0/mlflow/webhooks/{*path}",
        "/ajax-api/2.0/mlflow/webhooks/{*path}",
    ],
    // The permissions are not limited to keys that begin with `HOOK#`, because the function also
    // reads rows of users and grants for the authorizer, and because it is not proven how DynamoDB
    // applies such a limit to transactions (`docs/guide/unproven.md`).
    table: Some(TableRights {
        actions: TableActions::WriteItems,
        indexes: Indexes::None,
        why: "What the function does, and no Scan. It reads no index.",
    }),
    // The function `deliver` sends the events of tests.
    invokes: &["deliver"],
    settings: &[EnvironmentSetting::SealsSecrets],
    ..Function::BASE
});

struct Webhooks;

impl DomainApi for Webhooks {
    type Store = Store;

    fn routes() -> Vec<Route<Store>> {
        crate::routes()
    }

    fn store(around: &Environment) -> Result<Store, MountFailure> {
        let store = Store::new(around.table()?.clone())
            .with_workspaces(around.has_workspaces)
            .with_keys(around.secret_keys.clone())
            .with_outbound(OutboundClient::new(around.outbound_policy));
        Ok(match &around.deliverer {
            Some(deliverer) => store.with_deliverer(deliverer.clone()),
            None => store,
        })
    }

    /// Adds the deliverer in AWS, where the function `deliver` of the stack sends the events of
    /// tests.
    async fn prepare(store: Store, around: &Environment) -> Result<Store, MountFailure> {
        if !around.is_lambda || around.deliverer.is_some() {
            return Ok(store);
        }
        let deliverer = LambdaDeliverer::of_stack(DOMAIN.function.name).await;
        Ok(store.with_deliverer(Arc::new(deliverer.map_err(|DelivererFailure(cause)| cause)?)))
    }
}
