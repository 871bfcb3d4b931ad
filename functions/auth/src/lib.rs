//! The auth function: users, roles, and what they are granted, as `mlflow server --app-name basic-auth` has them; and pages on which one
//! signs in and makes tokens.
//!
//! [`routes`] is its whole API on one page. It is the only function that writes the table of access. Where nobody signs in, none of its
//! rows are there, as in a server without basic authentication.

mod audit;
mod form;
mod grants;
mod html;
mod parameters;
mod roles;
mod routes;
mod row;
mod settled;
mod signin;
pub mod store;
mod tokens;
mod users;

pub use routes::routes;
pub use row::DOMAIN;
pub use tokens::{day, new_token, reach};
pub use users::check_password;

/// The router of the domain over a store of one's own: for tests.
pub fn router(store: &store::Store, authorizer: std::sync::Arc<dyn access::Authorizer>) -> axum::Router {
    let frame = service::Frame::guarded(store.clone(), authorizer);
    signin::ending_sessions(settled::settled(service::router(routes(), &frame)), store.clone())
}
