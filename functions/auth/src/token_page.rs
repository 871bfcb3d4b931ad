//! The page on which users manage their API tokens.

use access::{AllowedActions, Credentials, Needs, Restriction, Scope};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::StatusCode;
use mlflow_api::{Error, ErrorCode, ExperimentId, Request, Result, UserName};
use permissions::Token;
use service::{Endpoint, EndpointResponse};

use crate::audit_log::changed;
use crate::html_page::{escape, note, page};
use crate::signin_page::fields;
use crate::store::{NewToken, Store};
use crate::users::caller;

const FORM: &str = r#"<h2>New token</h2>
<form method="post">
<input type="hidden" name="csrf_token" value="CSRF">
<input type="hidden" name="do" value="create">
<label for="name">Name</label>
<input id="name" name="name" maxlength="200" required>
<label for="only">Scope</label>
<select id="only" name="only">
<option value="everything">Full access</option>
<option value="read">Read-only</option>
<option value="ingest">Trace ingestion</option>
</select>
<label for="experiment">Limit to experiment (ID, optional)</label>
<input id="experiment" name="experiment" inputmode="numeric" placeholder="all experiments">
<label for="days">Expires after (days)</label>
<input id="days" name="days" inputmode="numeric" value="90" placeholder="never">
<button type="submit">Create token</button>
</form>
<p>Set it as MLFLOW_TRACKING_TOKEN. <a href="/">Back to experiments</a></p>
"#;
const REVOKE: &str = r#"<form method="post"><input type="hidden" name="csrf_token" value="CSRF">
<input type="hidden" name="do" value="revoke"><input type="hidden" name="id" value="ID">
<button class="plain" type="submit">Revoke</button></form>"#;

async fn tokens(store: &Store, user: &UserName, status: StatusCode, above: &str) -> Result<EndpointResponse> {
    let csrf = URL_SAFE_NO_PAD.encode(store.form_token(user).await?);
    let listed = store.tokens(user).await?;
    let rows: String = listed.iter().map(|token| row(token, &csrf)).collect();
    let table = if rows.is_empty() {
        "<p>You have no tokens yet.</p>\n".to_owned()
    } else {
        format!(
            "<table>\n<tr><th>Name</th><th>Scope</th><th>Created</th><th>Expires</th><th></th></tr>\n{rows}</table>\n"
        )
    };
    Ok(page(status, "Tokens", &format!("{above}{table}{}", FORM.replace("CSRF", &csrf))))
}

fn row(token: &Token, csrf: &str) -> String {
    format!(
        "<tr><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>\n",
        escape(&token.name),
        scope_text(&token.restriction),
        format_date(token.creation_time / 1_000),
        token.expires.map_or_else(|| "never".to_owned(), format_date),
        REVOKE.replace("ID", &token.id.to_string()).replace("CSRF", csrf),
    )
}

/// Returns the scope of a token in words.
#[must_use]
pub fn scope_text(restriction: &Restriction) -> String {
    let only = match restriction.actions {
        AllowedActions::All => "full access",
        AllowedActions::Read => "read-only",
        AllowedActions::Ingest => "trace ingestion",
    };
    match restriction.experiment {
        Some(experiment) => format!("{only}, experiment {experiment}"),
        None => only.to_owned(),
    }
}

/// Returns the date (UTC) of a time in seconds.
#[must_use]
pub fn format_date(seconds: i64) -> String {
    let day = time::OffsetDateTime::from_unix_timestamp(seconds).map(time::OffsetDateTime::date);
    day.map(|day| day.to_string()).unwrap_or_default()
}

/// Checks that the caller may manage tokens, which requires a password or a session. A caller that
/// authenticates with a token may not, because a token that it creates could outlive it.
pub(crate) fn check_may_manage_tokens(scope: &Scope) -> Result<()> {
    let sent = scope.identity().request_credentials.as_ref().map(|sent| &sent.credentials);
    match sent {
        Some(Credentials::Password(..) | Credentials::Session(..)) => Ok(()),
        Some(Credentials::Token(..) | Credentials::Signature(_)) | None => {
            let text = "Sign in to manage tokens. A token or an AWS signature is not sufficient.";
            Err(Error::new(ErrorCode::PermissionDenied, text))
        }
    }
}

pub(crate) struct Show;

impl Endpoint for Show {
    type Store = Store;
    type Answer = EndpointResponse;

    fn read(_: &Request) -> Result<Self> {
        Ok(Self)
    }

    fn needs(&self) -> Needs {
        Needs::nothing()
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<EndpointResponse> {
        check_may_manage_tokens(scope)?;
        tokens(store, &caller(scope)?, StatusCode::OK, "").await
    }
}

enum TokenChange {
    Create(Result<NewToken>),
    Revoke(Option<u32>),
}

pub(crate) struct Submit {
    csrf: Vec<u8>,
    change: TokenChange,
}

impl Endpoint for Submit {
    type Store = Store;
    type Answer = EndpointResponse;

    fn read(request: &Request) -> Result<Self> {
        let fields = fields(request);
        let field = |name| fields.iter().find(|(field, _)| field == name).map_or("", |(_, value)| value.trim());
        let wanted = match field("do") {
            "revoke" => TokenChange::Revoke(field("id").parse().ok()),
            _ => TokenChange::Create(new_token(field("name"), field("only"), field("experiment"), field("days"))),
        };
        Ok(Self { csrf: URL_SAFE_NO_PAD.decode(field("csrf_token")).unwrap_or_default(), change: wanted })
    }

    fn needs(&self) -> Needs {
        Needs::nothing()
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<EndpointResponse> {
        check_may_manage_tokens(scope)?;
        let user = caller(scope)?;
        if !store.is_form_token(&user, &self.csrf).await? {
            let why = note("The form has expired. Submit it again.");
            return tokens(store, &user, StatusCode::BAD_REQUEST, &why).await;
        }
        let done = match self.change {
            TokenChange::Create(Ok(new)) => store.token_create(&user, new).await.map(|(secret, token)| {
                let (id, reach) = (token.id, scope_text(&token.restriction));
                changed(scope, "token created", format_args!("token {id} {} ({reach})", token.name));
                let text = format!("Copy the token {} now. It is not shown again:", token.name);
                format!("{}<code>{}</code>\n", note(&text), secret.token())
            }),
            TokenChange::Create(Err(error)) => Err(error),
            TokenChange::Revoke(Some(id)) => store.token_revoke(&user, id).await.map(|()| {
                changed(scope, "token revoked", format_args!("token {id}"));
                note("Token revoked.")
            }),
            TokenChange::Revoke(None) => Err(Error::invalid("Token not found.")),
        };
        match done {
            Ok(above) => tokens(store, &user, StatusCode::OK, &above).await,
            Err(error) if error.code.http_status() < 500 => {
                tokens(store, &user, StatusCode::BAD_REQUEST, &note(&error.message)).await
            }
            Err(error) => Err(error),
        }
    }
}

/// Parses the fields of the form, or the arguments of the command line, into a token to be created.
///
/// # Errors
/// Returns `INVALID_PARAMETER_VALUE`.
pub fn new_token(name: &str, only: &str, experiment: &str, days: &str) -> Result<NewToken> {
    let only = AllowedActions::from_name(only)
        .ok_or_else(|| Error::invalid("The scope of a token must be 'everything', 'read' or 'ingest'."))?;
    let experiment = (!experiment.is_empty()).then(|| ExperimentId::parse(experiment)).transpose()?;
    let days = (!days.is_empty()).then(|| days.parse()).transpose();
    let days = days.map_err(|_| Error::invalid("The lifetime of a token must be a number of days."))?;
    Ok(NewToken { name: name.to_owned(), restriction: Restriction { experiment, actions: only }, days })
}
