//! The auth function: users, roles, grants and workspaces, as in `mlflow server --app-name
//! basic-auth`. It also serves the pages on which users sign in and manage their tokens.
//!
//! [`routes`] and [`workspace_routes`] are its whole API on one page. It is the only function that
//! writes to the access table. If users do not sign in, the routes of users are missing, as in an
//! MLflow server without basic authentication.
//!
//! `users.rs`, `roles.rs`, `grants.rs` and `workspaces.rs` contain endpoints; `signin.rs`,
//! `tokens.rs` and `form.rs` contain pages. `settled.rs` delays the response to a change until the
//! change is in effect in every process. See `docs/adr/0049-users.md`,
//! `docs/adr/0050-sessions-and-tokens.md` and `docs/guide/security.md`.

mod audit;
mod declaration;
mod form;
mod grants;
mod html;
mod names;
mod parameters;
mod roles;
mod routes;
mod settled;
mod signin;
pub mod store;
mod tokens;
mod users;
mod workspaces;

pub use declaration::DOMAIN;
pub use names::new_user_name;
pub use routes::{routes, workspace_routes};
pub use tokens::{day, new_token, reach};
pub use users::check_password;

/// Returns the router of workspaces.
pub(crate) fn workspace_router(
    store: &store::WorkspaceStore,
    authorizer: std::sync::Arc<dyn access::Authorizer>,
) -> axum::Router {
    let frame = service::FunctionContext::new(store.clone(), authorizer);
    settled::settled(service::router(workspace_routes(), &frame))
}

/// Returns the router of users over the given store. Also used by tests, with a store of their own.
pub fn router(store: &store::Store, authorizer: std::sync::Arc<dyn access::Authorizer>) -> axum::Router {
    let frame = service::FunctionContext::new(store.clone(), authorizer);
    signin::ending_sessions(settled::settled(service::router(routes(), &frame)), store.clone())
}
