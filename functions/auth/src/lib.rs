//! The auth function: users, roles, grants and workspaces, as `mlflow server --app-name basic-auth`
//! has them. It also serves pages to sign in and to make tokens.
//!
//! [`routes`] and [`workspace_routes`] are its whole API on one page. It is the only function that
//! writes the table of access. If nobody signs in, the routes of users are missing, as in a server
//! without basic authentication.
//!
//! `users.rs`, `roles.rs`, `grants.rs` and `workspaces.rs` are endpoints, `signin.rs`, `tokens.rs`
//! and `form.rs` pages. `settled.rs` answers each change when it holds in every process. See
//! `docs/adr/0049-users.md`, `docs/adr/0050-sessions-and-tokens.md` and `docs/guide/security.md`.

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

/// The router of workspaces.
pub(crate) fn workspace_router(
    store: &store::WorkspaceStore,
    authorizer: std::sync::Arc<dyn access::Authorizer>,
) -> axum::Router {
    let frame = service::Frame::guarded(store.clone(), authorizer);
    settled::settled(service::router(workspace_routes(), &frame))
}

/// The router of users over a store of one's own: for tests.
pub fn router(store: &store::Store, authorizer: std::sync::Arc<dyn access::Authorizer>) -> axum::Router {
    let frame = service::Frame::guarded(store.clone(), authorizer);
    signin::ending_sessions(settled::settled(service::router(routes(), &frame)), store.clone())
}
