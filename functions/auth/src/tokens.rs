//! The page of one's tokens.

use access::{Credentials, Needs, Only, Restriction, Scope};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::StatusCode;
use mlflow_api::{Error, ErrorCode, ExperimentId, Request, Result, UserName};
use permissions::Token;
use service::{Answer, Endpoint};

use crate::audit::changed;
use crate::html::{escape, note, page};
use crate::signin::fields;
use crate::store::{NewToken, Store};
use crate::users::caller;

const FORM: &str = r#"<h2>New token</h2>
<form method="post">
<input type="hidden" name="csrf_token" value="CSRF">
<input type="hidden" name="do" value="create">
<label for="name">Name</label>
<input id="name" name="name" maxlength="200" required>
<label for="only">May be used to</label>
<select id="only" name="only">
<option value="everything">do whatever I may do</option>
<option value="read">read</option>
<option value="ingest">send traces</option>
</select>
<label for="experiment">In this experiment only (its id)</label>
<input id="experiment" name="experiment" inputmode="numeric" placeholder="in all of them">
<label for="days">Ends after so many days</label>
<input id="days" name="days" inputmode="numeric" value="90" placeholder="never">
<button type="submit">Create</button>
</form>
<p>Clients take it as MLFLOW_TRACKING_TOKEN. <a href="/">To the experiments</a></p>
"#;
const REVOKE: &str = r#"<form method="post"><input type="hidden" name="csrf_token" value="CSRF">
<input type="hidden" name="do" value="revoke"><input type="hidden" name="id" value="ID">
<button class="plain" type="submit">Revoke</button></form>"#;

async fn tokens(store: &Store, user: &UserName, status: StatusCode, above: &str) -> Result<Answer> {
    let csrf = URL_SAFE_NO_PAD.encode(store.form_token(user).await?);
    let listed = store.tokens(user).await?;
    let rows: String = listed.iter().map(|token| row(token, &csrf)).collect();
    let table = if rows.is_empty() {
        "<p>There are none.</p>\n".to_owned()
    } else {
        format!("<table>\n<tr><th>Name</th><th>For</th><th>Made</th><th>Ends</th><th></th></tr>\n{rows}</table>\n")
    };
    Ok(page(status, "Tokens", &format!("{above}{table}{}", FORM.replace("CSRF", &csrf))))
}

fn row(token: &Token, csrf: &str) -> String {
    format!(
        "<tr><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>\n",
        escape(&token.name),
        reach(&token.restriction),
        day(token.creation_time / 1_000),
        token.expires.map_or_else(|| "never".to_owned(), day),
        REVOKE.replace("ID", &token.id.to_string()).replace("CSRF", csrf),
    )
}

/// The purpose of a token, in words.
#[must_use]
pub fn reach(restriction: &Restriction) -> String {
    let only = match restriction.only {
        Only::Everything => "everything",
        Only::Reading => "reading",
        Only::Ingest => "sending traces",
    };
    match restriction.experiment {
        Some(experiment) => format!("{only}, experiment {experiment}"),
        None => only.to_owned(),
    }
}

/// The day of a time in seconds.
#[must_use]
pub fn day(seconds: i64) -> String {
    let day = time::OffsetDateTime::from_unix_timestamp(seconds).map(time::OffsetDateTime::date);
    day.map(|day| day.to_string()).unwrap_or_default()
}

/// A caller with only a token could make one that outlives it.
fn may_make_tokens(scope: &Scope) -> Result<()> {
    let sent = scope.identity().sent.as_ref().map(|sent| &sent.credentials);
    match sent {
        Some(Credentials::Password(..) | Credentials::Session(..)) => Ok(()),
        Some(Credentials::Token(..) | Credentials::Signature(_)) | None => {
            Err(Error::new(ErrorCode::PermissionDenied, "Tokens are made by whoever signs in with a password."))
        }
    }
}

pub(crate) struct Show;

impl Endpoint for Show {
    type Store = Store;
    type Answer = Answer;

    fn read(_: &Request) -> Result<Self> {
        Ok(Self)
    }

    fn needs(&self) -> Needs {
        Needs::nothing()
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<Answer> {
        may_make_tokens(scope)?;
        tokens(store, &caller(scope)?, StatusCode::OK, "").await
    }
}

enum Wanted {
    Create(Result<NewToken>),
    Revoke(Option<u32>),
}

pub(crate) struct Submit {
    csrf: Vec<u8>,
    wanted: Wanted,
}

impl Endpoint for Submit {
    type Store = Store;
    type Answer = Answer;

    fn read(request: &Request) -> Result<Self> {
        let fields = fields(request);
        let field = |name| fields.iter().find(|(field, _)| field == name).map_or("", |(_, value)| value.trim());
        let wanted = match field("do") {
            "revoke" => Wanted::Revoke(field("id").parse().ok()),
            _ => Wanted::Create(new_token(field("name"), field("only"), field("experiment"), field("days"))),
        };
        Ok(Self { csrf: URL_SAFE_NO_PAD.decode(field("csrf_token")).unwrap_or_default(), wanted })
    }

    fn needs(&self) -> Needs {
        Needs::nothing()
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<Answer> {
        may_make_tokens(scope)?;
        let user = caller(scope)?;
        if !store.is_form_token(&user, &self.csrf).await? {
            let why = note("The form was too old. Send it again.");
            return tokens(store, &user, StatusCode::BAD_REQUEST, &why).await;
        }
        let done = match self.wanted {
            Wanted::Create(Ok(new)) => store.token_create(&user, new).await.map(|(secret, token)| {
                let (id, reach) = (token.id, reach(&token.restriction));
                changed(scope, "token created", format_args!("token {id} {} for {reach}", token.name));
                let text = format!("This is the token {}. It is not shown again:", token.name);
                format!("{}<code>{}</code>\n", note(&text), secret.token())
            }),
            Wanted::Create(Err(error)) => Err(error),
            Wanted::Revoke(Some(id)) => store.token_revoke(&user, id).await.map(|()| {
                changed(scope, "token revoked", format_args!("token {id}"));
                note("The token is revoked.")
            }),
            Wanted::Revoke(None) => Err(Error::invalid("There is no such token.")),
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

/// The token that texts ask for.
///
/// # Errors
/// `INVALID_PARAMETER_VALUE`.
pub fn new_token(name: &str, only: &str, experiment: &str, days: &str) -> Result<NewToken> {
    let only = Only::from_name(only).ok_or_else(|| Error::invalid("A token is for everything, read or ingest."))?;
    let experiment = (!experiment.is_empty()).then(|| ExperimentId::parse(experiment)).transpose()?;
    let days = (!days.is_empty()).then(|| days.parse()).transpose();
    let days = days.map_err(|_| Error::invalid("The days of a token are a number."))?;
    Ok(NewToken { name: name.to_owned(), restriction: Restriction { experiment, only }, days })
}
