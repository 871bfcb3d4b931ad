//! Sign-in at identity providers, and renewal of the sessions that it opens.
//!
//! 1. The sign-in page has a link per provider: `/signin?provider=NAME&next=PATH`. `start.rs`
//!    answers with a redirect to the provider, and a signed cookie that describes the attempt
//!    (`attempts.rs`, `attempt_cookies.rs`).
//! 2. The provider redirects the browser to `/signin?code=…&state=…`. `callback.rs` exchanges the
//!    code, finds or creates the user, applies the rules, and opens a session.
//! 3. Before the session is overdue, a script of the page requests its renewal. `renewal.rs` presents
//!    the refresh token, and applies the rules again. For a page that is opened with an overdue
//!    session, the sign-in page does the same.
//! 4. After signing out, the sign-in page offers to sign out at the provider as well
//!    (`sign_out.rs`).
//!
//! `services.rs` caches what these steps need: the configuration, and the provider's keys and client
//! secrets. The crate `identity-providers` sends the requests to providers and verifies what they
//! respond.

mod attempt_cookies;
mod attempts;
mod callback;
mod clients;
mod configuration;
mod confirmation;
mod failure;
mod redirect_uri;
mod renewal;
pub(crate) mod services;
mod sign_out;
mod start;

pub(crate) use callback::{finish, is_callback};
pub(crate) use configuration::configuration;
pub(crate) use renewal::{RenewalOutcome, renew};
pub(crate) use sign_out::{sign_out_cookie, sign_out_link};
pub(crate) use start::start;
