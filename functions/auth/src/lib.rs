//! The auth function: users, roles, grants and workspaces, as in `mlflow server --app-name
//! basic-auth`. It also serves the pages on which users sign in and manage their tokens.
//!
//! [`routes`] and [`workspace_routes`] are its whole API on one page. It is the only function that
//! writes to the access table. If users do not sign in, the routes of users are missing, as in an
//! MLflow server without basic authentication.
//!
//! `users.rs`, `roles.rs`, `grants.rs` and `workspaces.rs` contain endpoints. `signin_page.rs`,
//! `token_page.rs` and `signup_page.rs` contain pages, and `sign_on/` signs users in at identity
//! providers. `lease_delay.rs` delays the response to a
//! change until the change is in effect in every process. See `docs/adr/0049-users.md`,
//! `docs/adr/0050-sessions-and-tokens.md` and `docs/guide/security.md`.

mod audit_log;
mod declaration;
mod grants;
mod html_page;
mod lease_delay;
mod parameters;
mod renewal_endpoint;
mod response_cookies;
mod roles;
mod routes;
mod sign_on;
mod signin_form;
mod signin_page;
mod signup_page;
pub mod store;
mod token_page;
mod user_names;
mod users;
mod workspaces;

pub use declaration::DOMAIN;
pub use routes::{routes, workspace_routes};
pub use sign_on::services::SignOnServices;
pub use token_page::{format_date, new_token, scope_text};
pub use user_names::new_user_name;
pub use users::check_password;

/// Returns the router of workspaces.
pub(crate) fn workspace_router(
    store: &store::WorkspaceStore,
    authorizer: std::sync::Arc<dyn access::Authorizer>,
) -> axum::Router {
    let frame = service::FunctionContext::new(store.clone(), authorizer);
    lease_delay::with_lease_delay(service::router(workspace_routes(), &frame))
}

/// Returns the router of users over the given store. Tests use it with a store over a private
/// table.
pub fn router(store: &store::Store, authorizer: std::sync::Arc<dyn access::Authorizer>) -> axum::Router {
    let frame = service::FunctionContext::new(store.clone(), authorizer);
    signin_page::end_signed_out_sessions(
        lease_delay::with_lease_delay(service::router(routes(), &frame)),
        store.clone(),
    )
}
