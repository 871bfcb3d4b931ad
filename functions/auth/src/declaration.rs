//! Declares the domain: its function in the stack, and how it is mounted.

use std::sync::Arc;

use domain::{
    Domain, DomainApi, EndpointInfo, Environment, Function, Indexes, MountFailure, MountedDomain, SecretParameter,
    TableActions, TableRights,
};
use futures::future::BoxFuture;
use service::{InternalCalls, Route};

use crate::sign_on::services::SignOnServices;
use crate::store::{Store, WorkspaceStore};

/// Users, roles, grants and workspaces.
pub const DOMAIN: Domain = Domain::with_router(
    Function {
        name: "auth",
        resource: "Auth",
        description: "Users, roles, their grants, and workspaces. The only function that writes to the access table.",
        paths: &[
            "/api/2.0/mlflow/users/{*path}",
            "/ajax-api/2.0/mlflow/users/{*path}",
            "/api/3.0/mlflow/users/{*path}",
            "/ajax-api/3.0/mlflow/users/{*path}",
            "/api/3.0/mlflow/roles/{*path}",
            "/ajax-api/3.0/mlflow/roles/{*path}",
            "/api/3.0/mlflow/workspaces",
            "/ajax-api/3.0/mlflow/workspaces",
            "/api/3.0/mlflow/workspaces/{*path}",
            "/ajax-api/3.0/mlflow/workspaces/{*path}",
            "/signup",
            "/signin",
            "/tokens",
        ],
        table: Some(TableRights {
            actions: TableActions::Write,
            indexes: Indexes::None,
            why: "It stores direct grants of users, and workspaces, in the data table.",
        }),
        writes_access: true,
        secrets: &[SecretParameter {
            variable: domain::SIGN_ON_SECRETS_VARIABLE,
            name: "sign-on/*",
            why: "Client secrets of identity providers. No other function may read them.",
        }],
        ..Function::BASE
    },
    endpoints,
    mount,
);

fn endpoints() -> Vec<EndpointInfo> {
    domain::endpoints::<Auth>().into_iter().chain(domain::endpoints::<WorkspaceDomain>()).collect()
}

struct Auth;

struct WorkspaceDomain;

impl DomainApi for WorkspaceDomain {
    type Store = WorkspaceStore;

    fn routes() -> Vec<Route<WorkspaceStore>> {
        crate::workspace_routes()
    }

    fn store(around: &Environment) -> Result<WorkspaceStore, MountFailure> {
        let users = around.user_authorizer.is_some().then(|| Auth::store(around)).transpose()?;
        Ok(WorkspaceStore::new(around.table()?.clone(), around.has_workspaces, users))
    }
}

impl DomainApi for Auth {
    type Store = Store;

    fn routes() -> Vec<Route<Store>> {
        crate::routes()
    }

    fn store(around: &Environment) -> Result<Store, MountFailure> {
        let basic = around.user_authorizer.clone().ok_or("user authentication is off")?;
        let access = around.access.clone().ok_or("the name of the access table is missing")?;
        let sign_on = SignOnServices::new(Arc::clone(&around.client_secrets));
        Ok(Store::new(around.table()?.clone(), access, basic).with_sign_on(sign_on))
    }
}

/// Mounts the routes of workspaces, and the routes of users if users sign in. If they do not, the
/// routes of users are missing, as in an MLflow server without basic authentication.
fn mount(around: Environment) -> BoxFuture<'static, Result<MountedDomain, MountFailure>> {
    Box::pin(async move {
        let workspaces = crate::workspace_router(&WorkspaceDomain::store(&around)?, around.authorizer.clone());
        let router = match &around.user_authorizer {
            Some(_) => {
                service::join_routers(workspaces, [crate::router(&Auth::store(&around)?, around.authorizer.clone())])
            }
            None => workspaces,
        };
        Ok(MountedDomain { router, calls: InternalCalls::default() })
    })
}
