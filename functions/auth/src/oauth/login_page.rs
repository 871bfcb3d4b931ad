//! The page on which users approve the login of a client.
//!
//! If a client on another device shows a code (RFC 8628), the user enters it here, sees the name of
//! the client, and approves. If a client on the user's own machine has opened the page (RFC 8252), the
//! parameters of the URL contain the port of the loopback address to return to, and a PKCE challenge.

use access::{Needs, Scope};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::header::HeaderName;
use http::{HeaderValue, StatusCode};
use mlflow_api::{Request, Result, UserName};
use service::{Endpoint, EndpointResponse};

use crate::audit_log::changed;
use crate::html_page::{escape, note, page};
use crate::oauth::client_login::{LoopbackApproval, TOKEN_DAYS, approve_loopback, client_name, code_digest};
use crate::signin_page::fields;
use crate::store::Store;
use crate::token_page::check_may_manage_tokens;
use crate::users::caller;

const TITLE: &str = "Log in to a client";
const CODE_FORM: &str = r#"<form class="narrow" method="post" action="/login">
<input type="hidden" name="csrf_token" value="CSRF">
<input type="hidden" name="do" value="find">
<label for="user_code">Code that the client shows</label>
<input id="user_code" name="user_code" autocomplete="off" autocapitalize="characters" spellcheck="false" value="CODE" required autofocus>
<button type="submit">Continue</button>
</form>
"#;
const APPROVAL_FORM: &str = r#"<p>The client on NAME requests a token with all of your permissions (USER). It expires after DAYS days, and you can revoke it on the page <a href="/tokens">Tokens</a>.</p>
<p>Continue only if you have just started this login yourself.</p>
<form method="post" action="/login">
<input type="hidden" name="csrf_token" value="CSRF">
FIELDS<button name="do" value="approve" type="submit">Approve</button>
<button class="plain" name="do" value="deny" type="submit">Cancel</button>
</form>
"#;
const REFRESH: HeaderName = HeaderName::from_static("refresh");
/// Length of a PKCE challenge: SHA-256 in URL-safe Base64.
const CHALLENGE_LENGTH: usize = 43;
/// Maximum length of a client's state.
const MAX_STATE_LENGTH: usize = 200;

/// A login that a client on the user's machine has begun.
struct LoopbackLogin {
    port: u16,
    challenge: String,
    state: String,
    name: String,
}

/// The login that a request is about.
enum RequestedLogin {
    /// The login with a code, which may be empty.
    Device(String),
    /// A login at a loopback address.
    Loopback(LoopbackLogin),
    /// The parameters are invalid.
    Invalid,
}

impl RequestedLogin {
    /// Reads the parameters of the URL, or the fields of the form.
    fn of(fields: &[(String, String)]) -> Self {
        let field = |name| fields.iter().find(|(field, _)| field == name).map(|(_, value)| value.as_str());
        let Some(port) = field("redirect_port") else {
            return Self::Device(field("user_code").unwrap_or_default().trim().to_owned());
        };
        let [challenge, state, name] = ["challenge", "state", "name"].map(|name| field(name).unwrap_or_default());
        let is_token = |text: &str| text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte));
        let is_valid = challenge.len() == CHALLENGE_LENGTH
            && is_token(challenge)
            && (1..=MAX_STATE_LENGTH).contains(&state.len())
            && is_token(state);
        match (port.parse(), client_name(name)) {
            (Ok(port), Some(name)) if is_valid && port != 0 => {
                Self::Loopback(LoopbackLogin { port, challenge: challenge.to_owned(), state: state.to_owned(), name })
            }
            _ => Self::Invalid,
        }
    }
}

impl LoopbackLogin {
    fn hidden_fields(&self) -> String {
        let port = self.port.to_string();
        let fields = [
            ("redirect_port", port.as_str()),
            ("challenge", &self.challenge),
            ("state", &self.state),
            ("name", &self.name),
        ];
        fields.map(|(name, value)| hidden_field(name, value)).concat()
    }

    /// Returns a page that leads back to the client, by the header `Refresh` and a link. A status of
    /// 303 would not work, because Chromium applies the page's `form-action` to redirects that follow
    /// a form.
    fn back(&self, parameter: &str, text: &str) -> EndpointResponse {
        // The parameter and the state consist of characters that need no escape.
        let url = format!("http://127.0.0.1:{}/?{parameter}&state={}", self.port, self.state);
        let body = format!("<p>{text} <a href=\"{}\">Continue</a></p>\n", escape(&url));
        let answer = page(StatusCode::OK, TITLE, &body);
        match HeaderValue::from_str(&format!("0; url={url}")) {
            Ok(refresh) => answer.with_header(REFRESH, refresh),
            Err(_) => answer,
        }
    }
}

fn hidden_field(name: &str, value: &str) -> String {
    format!("<input type=\"hidden\" name=\"{name}\" value=\"{}\">\n", escape(value))
}

async fn csrf_field(store: &Store, user: &UserName) -> Result<String> {
    Ok(URL_SAFE_NO_PAD.encode(store.form_token(user).await?))
}

/// Returns the form for a code, below the outcome of an earlier attempt.
async fn code_form(
    store: &Store,
    user: &UserName,
    status: StatusCode,
    text: &str,
    code: &str,
) -> Result<EndpointResponse> {
    let form = CODE_FORM.replace("CSRF", &csrf_field(store, user).await?).replace("CODE", &escape(code));
    Ok(page(status, TITLE, &format!("{}{form}", note(text))))
}

/// Returns the form with which the user approves a login.
async fn approval_form(store: &Store, user: &UserName, name: &str, fields: &str) -> Result<EndpointResponse> {
    let csrf = csrf_field(store, user).await?;
    // Text that a client or a user has chosen is inserted last, so that nothing is replaced in it.
    let form = APPROVAL_FORM.replace("CSRF", &csrf).replace("DAYS", &TOKEN_DAYS.to_string()).replace("FIELDS", fields);
    let (before, after) = form.split_once("NAME").unwrap_or((&form, ""));
    let (between, after) = after.split_once("USER").unwrap_or((after, ""));
    let [name, user] = [name, user.as_str()].map(escape);
    Ok(page(StatusCode::OK, TITLE, &format!("{before}<strong>{name}</strong>{between}{user}{after}")))
}

fn invalid_login() -> EndpointResponse {
    page(StatusCode::BAD_REQUEST, TITLE, &note("The parameters in the URL are invalid. Start the login again."))
}

pub(crate) struct Show(RequestedLogin);

impl Endpoint for Show {
    type Store = Store;
    type Answer = EndpointResponse;

    fn read(request: &Request) -> Result<Self> {
        Ok(Self(RequestedLogin::of(&request.query)))
    }

    fn needs(&self) -> Needs {
        Needs::nothing()
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<EndpointResponse> {
        check_may_manage_tokens(scope)?;
        let user = caller(scope)?;
        match self.0 {
            // The code is not looked up before the user continues, so that links to this page do not
            // use up the user's attempts.
            RequestedLogin::Device(code) => code_form(store, &user, StatusCode::OK, "", &code).await,
            RequestedLogin::Loopback(login) => approval_form(store, &user, &login.name, &login.hidden_fields()).await,
            RequestedLogin::Invalid => Ok(invalid_login()),
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Action {
    Find,
    Approve,
    Deny,
}

pub(crate) struct Submit {
    csrf: Vec<u8>,
    action: Action,
    login: RequestedLogin,
}

impl Endpoint for Submit {
    type Store = Store;
    type Answer = EndpointResponse;

    fn read(request: &Request) -> Result<Self> {
        let fields = fields(request);
        let field = |name| fields.iter().find(|(field, _)| field == name).map_or("", |(_, value)| value.as_str());
        let action = match field("do") {
            "approve" => Action::Approve,
            "deny" => Action::Deny,
            _ => Action::Find,
        };
        let csrf = URL_SAFE_NO_PAD.decode(field("csrf_token")).unwrap_or_default();
        Ok(Self { csrf, action, login: RequestedLogin::of(&fields) })
    }

    fn needs(&self) -> Needs {
        Needs::nothing()
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<EndpointResponse> {
        check_may_manage_tokens(scope)?;
        let user = caller(scope)?;
        let is_own_form = store.is_form_token(&user, &self.csrf).await?;
        match self.login {
            RequestedLogin::Invalid => Ok(invalid_login()),
            RequestedLogin::Loopback(_) if !is_own_form => {
                let text = "The form has expired. Start the login again.";
                Ok(page(StatusCode::BAD_REQUEST, TITLE, &note(text)))
            }
            RequestedLogin::Device(code) if !is_own_form => {
                code_form(store, &user, StatusCode::BAD_REQUEST, "The form has expired. Submit it again.", &code).await
            }
            RequestedLogin::Loopback(login) => loopback(scope, store, &user, self.action, login).await,
            RequestedLogin::Device(code) => device(scope, store, &user, self.action, &code).await,
        }
    }
}

/// Approves or denies a login at a loopback address, and leads back to the client.
async fn loopback(
    scope: &Scope,
    store: &Store,
    user: &UserName,
    action: Action,
    login: LoopbackLogin,
) -> Result<EndpointResponse> {
    match action {
        Action::Find => approval_form(store, user, &login.name, &login.hidden_fields()).await,
        Action::Deny => Ok(login.back("error=access_denied", "The login was cancelled.")),
        Action::Approve => {
            let approval = LoopbackApproval { challenge: login.challenge.clone(), name: login.name.clone() };
            let Some(code) = approve_loopback(store, user, &approval).await? else { return Ok(invalid_login()) };
            changed(scope, "login approved", format_args!("{}", login.name));
            Ok(login.back(&format!("code={code}"), "Approved."))
        }
    }
}

/// Shows the login with a code, or approves or denies it.
async fn device(scope: &Scope, store: &Store, user: &UserName, action: Action, code: &str) -> Result<EndpointResponse> {
    let Some(attempt) = store.login_limits().wrong_codes.take(user) else {
        let text = "You have entered too many wrong codes. Try again in a minute.";
        return code_form(store, user, StatusCode::TOO_MANY_REQUESTS, text, "").await;
    };
    let digest = code_digest(code);
    let found = store.login_find(&digest).await?.filter(|login| login.user.is_none() && !login.is_refused);
    let Some(login) = found else {
        let text = "The code is not valid. Codes expire after ten minutes, and can be used once.";
        return code_form(store, user, StatusCode::BAD_REQUEST, text, code).await;
    };
    attempt.give_back();
    let is_done = match action {
        Action::Find => return approval_form(store, user, &login.name, &hidden_field("user_code", code)).await,
        Action::Approve => store.login_approve(&digest, user).await?,
        Action::Deny => store.login_refuse(&digest).await?,
    };
    if !is_done {
        let text = "The login has expired. Start it again.";
        return code_form(store, user, StatusCode::BAD_REQUEST, text, "").await;
    }
    let text = if action == Action::Approve {
        changed(scope, "login approved", format_args!("{}", login.name));
        format!("Approved. You can close this page, and return to {}.", login.name)
    } else {
        "The login was cancelled. You can close this page.".to_owned()
    };
    Ok(page(StatusCode::OK, TITLE, &note(&text)))
}
