//! The content of the sign-in page: links to identity providers, and the form for passwords.
//!
//! The form has no `action`. It is therefore submitted to the page's own address, and the browser
//! keeps the fragment (after the `#`) across the sign-in. Identity providers are links and not forms,
//! because Chromium applies the page's `form-action` to every redirect that follows a form. A script
//! keeps the fragment for them (`fragment.js`).

use access::RequestHead;
use http::StatusCode;
use identity_providers::{Configuration, Provider};
use mlflow_api::{Request, Result};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use permissions::PasswordPolicy;
use permissions::browser_pages::{SIGN_IN_PATH, redirect_path};
use service::EndpointResponse;

use crate::html_page::{escape, note, page, page_with_fragment_script};
use crate::sign_on::{configuration, sign_out_link};
use crate::store::Store;

const FORM: &str = r#"<form class="narrow" method="post">
<label for="username">Username</label>
<input id="username" name="username" autocomplete="username" value="NAME" required autofocus>
<label for="password">Password</label>
<input id="password" name="password" type="password" autocomplete="current-password" required>
<button type="submit">Sign in</button>
</form>
"#;
/// Text of the page if no user exists yet.
const NO_USERS_NOTE: &str = "<p>This server has no users yet. Its operator creates the first administrator:</p>\n\
                      <code>mlflow-serverless admin create NAME</code>\n\
                      <p>In AWS, from a release or a checkout, with the credentials that deployed it:</p>\n\
                      <code>./deploy --admin NAME</code>\n<code>make admin NAME=NAME</code>\n";

/// Returns the path to redirect to after signing in.
pub(crate) fn next(request: &Request) -> String {
    redirect_path(request.argument("next").unwrap_or("/")).to_owned()
}

/// The sign-in page for a request.
pub(crate) struct SignInPage<'a> {
    store: &'a Store,
    arrived: &'a RequestHead,
    next: String,
    name: &'a str,
}

impl<'a> SignInPage<'a> {
    /// Creates the page for a request.
    pub(crate) fn new(store: &'a Store, arrived: &'a RequestHead, request: &Request) -> Self {
        Self { store, arrived, next: next(request), name: "" }
    }

    /// Fills in the user name.
    pub(crate) fn with_name(self, name: &'a str) -> Self {
        Self { name, ..self }
    }

    /// Sets the page to return to after signing in.
    pub(crate) fn with_next(self, next: String) -> Self {
        Self { next, ..self }
    }

    /// Returns the page with a note. If the configuration of single sign-on cannot be read, the page
    /// has the form alone. Takes up to two requests.
    ///
    /// # Errors
    /// Returns an error if the table cannot be read.
    pub(crate) async fn render(self, status: StatusCode, text: &str) -> Result<EndpointResponse> {
        let configuration = configuration(self.store).await.unwrap_or_else(|error| {
            tracing::error!(%error, "cannot read the configuration of single sign-on");
            None
        });
        let providers = configuration.as_ref().map_or(&[][..], |found| &found.providers);
        if providers.is_empty() && !self.store.has_users().await? {
            return Ok(page(StatusCode::OK, "Sign in", NO_USERS_NOTE));
        }
        let form = FORM.replace("NAME", &escape(self.name));
        if providers.is_empty() {
            return Ok(page(status, "Sign in", &format!("{}{form}", note(text))));
        }
        let links: String = providers.iter().map(|provider| self.link(provider)).collect();
        let form = match self.store.password_policy() {
            PasswordPolicy::Everyone => format!("<p>Or with a password:</p>\n{form}"),
            PasswordPolicy::Administrators(names) if names.is_empty() => String::new(),
            PasswordPolicy::Administrators(_) => {
                format!("<details>\n<summary>Administrators with a password</summary>\n{form}</details>\n")
            }
        };
        let sign_out = self.sign_out_link(configuration.as_deref()).await;
        let body = format!("{}{sign_out}{links}{form}", note(text));
        Ok(page_with_fragment_script(status, "Sign in", &body))
    }

    /// Returns the link that starts signing in at a provider.
    fn link(&self, provider: &Provider) -> String {
        let next = utf8_percent_encode(&self.next, NON_ALPHANUMERIC).to_string();
        let (name, title) = (&provider.name, escape(&provider.title));
        format!(
            "<a class=\"provider\" data-provider href=\"{SIGN_IN_PATH}?provider={name}&amp;next={next}\">Sign in with {title}</a>\n"
        )
    }

    /// Returns the link that also signs out at the provider, for a browser that has just signed out
    /// here.
    async fn sign_out_link(&self, configuration: Option<&Configuration>) -> String {
        let Some(configuration) = configuration else { return String::new() };
        match sign_out_link(self.store.sign_on(), configuration, self.arrived).await {
            Some((title, url)) => format!(
                "<p>You have signed out. <a href=\"{}\">Sign out at {} as well</a></p>\n",
                escape(&url),
                escape(&title)
            ),
            None => String::new(),
        }
    }
}
