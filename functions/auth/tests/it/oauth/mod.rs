//! The OAuth endpoints and the page of logins.

mod login_page;
mod logins;
mod machines;
mod oauth_site;
