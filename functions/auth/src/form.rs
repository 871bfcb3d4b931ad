//! A page on which administrators make users in a browser, as MLflow's `/signup`.

use access::{Needs, Resource, Scope};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY};
use http::{HeaderValue, StatusCode};
use mlflow_api::{Error, Request, Result, UserName};
use service::{Answer, Endpoint};

use crate::store::Store;
use crate::users::{caller, check_password};

const PAGE: &str = r#"<!doctype html>
<html lang="en">
<title>Sign up - MLflow</title>
<style>
body { font-family: sans-serif; max-width: 24rem; margin: 4rem auto; }
label, input { display: block; width: 100%; box-sizing: border-box; margin: 0.5rem 0; padding: 0.4rem; }
</style>
<h1>New user</h1>
<form action="/api/2.0/mlflow/users/create-ui" method="post">
<input type="hidden" name="csrf_token" value="TOKEN">
<label for="username">Username</label>
<input type="text" id="username" name="username" required>
<label for="password">Password</label>
<input type="password" id="password" name="password" minlength="12" required>
<input type="submit" value="Sign up">
</form>
"#;

fn page(status: StatusCode, html: String) -> Answer {
    let answer = Answer::Foreign { status, content_type: "text/html; charset=utf-8", body: html.into_bytes() };
    let only_here =
        "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'";
    answer
        .with_header(CACHE_CONTROL, HeaderValue::from_static("no-store"))
        .with_header(CONTENT_SECURITY_POLICY, HeaderValue::from_static(only_here))
}

pub(crate) struct Show;

impl Endpoint for Show {
    type Store = Store;
    type Answer = Answer;

    fn read(_: &Request) -> Result<Self> {
        Ok(Self)
    }

    fn needs(&self) -> Needs {
        Needs::create(Resource::User)
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<Answer> {
        let token = URL_SAFE_NO_PAD.encode(store.form_token(&caller(scope)?).await?);
        Ok(page(StatusCode::OK, PAGE.replace("TOKEN", &token)))
    }
}

pub(crate) enum Submit {
    New { name: String, password: String, token: Vec<u8> },
    WrongType,
}

impl Endpoint for Submit {
    type Store = Store;
    type Answer = Answer;

    fn read(request: &Request) -> Result<Self> {
        if request.content_type.as_deref() != Some("application/x-www-form-urlencoded") {
            return Ok(Self::WrongType);
        }
        let body = std::str::from_utf8(&request.body).map_err(|_| Error::invalid("The form is no UTF-8."))?;
        let fields = Request::parse_query(body);
        let field =
            |name| fields.iter().find(|(field, _)| field == name).map(|(_, value)| value.clone()).unwrap_or_default();
        Ok(Self::New {
            name: field("username"),
            password: field("password"),
            token: URL_SAFE_NO_PAD.decode(field("csrf_token")).unwrap_or_default(),
        })
    }

    fn needs(&self) -> Needs {
        Needs::create(Resource::User)
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<Answer> {
        let refused = |text: &str| Ok(page(StatusCode::BAD_REQUEST, text.to_owned()));
        let Self::New { name, password, token } = self else {
            return refused("Invalid content type. Must be application/x-www-form-urlencoded");
        };
        if !store.is_form_token(&caller(scope)?, &token).await? {
            return refused("The CSRF token is missing or invalid. Load the form again.");
        }
        if name.is_empty() || password.is_empty() {
            return refused("Username and password cannot be empty.");
        }
        let name = UserName::new(&name)?;
        check_password(&password)?;
        store.user_create(&name, password, false).await?;
        Ok(page(
            StatusCode::OK,
            "<!doctype html><title>MLflow</title><p>The user was made. <a href=\"/\">To the experiments</a>".to_owned(),
        ))
    }
}
