//! The form on which administrators create users in a browser, at MLflow's path `/signup`.

use access::{Needs, Resource, Scope};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::StatusCode;
use mlflow_api::{Error, Request, Result};
use service::{Endpoint, EndpointResponse};

use crate::audit_log::changed;
use crate::html_page::{note, page};
use crate::store::Store;
use crate::user_names::new_user_name;
use crate::users::{caller, check_password};

const FORM: &str = r#"<form class="narrow" action="/api/2.0/mlflow/users/create-ui" method="post">
<input type="hidden" name="csrf_token" value="TOKEN">
<label for="username">Username</label>
<input id="username" name="username" autocomplete="off" required>
<label for="password">Password</label>
<input id="password" name="password" type="password" autocomplete="new-password" minlength="12" required>
<button type="submit">Sign up</button>
</form>
"#;

pub(crate) struct Show;

impl Endpoint for Show {
    type Store = Store;
    type Answer = EndpointResponse;

    fn read(_: &Request) -> Result<Self> {
        Ok(Self)
    }

    fn needs(&self) -> Needs {
        Needs::create(Resource::User)
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<EndpointResponse> {
        let token = URL_SAFE_NO_PAD.encode(store.form_token(&caller(scope)?).await?);
        Ok(page(StatusCode::OK, "New user", &FORM.replace("TOKEN", &token)))
    }
}

pub(crate) enum Submit {
    New { name: String, password: String, token: Vec<u8> },
    WrongType,
}

impl Endpoint for Submit {
    type Store = Store;
    type Answer = EndpointResponse;

    fn read(request: &Request) -> Result<Self> {
        if request.content_type.as_deref() != Some("application/x-www-form-urlencoded") {
            return Ok(Self::WrongType);
        }
        let body = std::str::from_utf8(&request.body).map_err(|_| Error::invalid("The form is not valid UTF-8."))?;
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

    async fn act(self, scope: &Scope, store: &Store) -> Result<EndpointResponse> {
        let refused = |text: &str| Ok(page(StatusCode::BAD_REQUEST, "New user", &note(text)));
        let Self::New { name, password, token } = self else {
            return refused("Invalid content type. Must be application/x-www-form-urlencoded");
        };
        if !store.is_form_token(&caller(scope)?, &token).await? {
            return refused("The CSRF token is missing or invalid. Load the form again.");
        }
        if name.is_empty() || password.is_empty() {
            return refused("Username and password cannot be empty.");
        }
        if let Err(error) = store.check_creates_passwords() {
            return refused(&error.message);
        }
        let name = new_user_name(&name)?;
        check_password(&password)?;
        store.user_create(&name, password, false).await?;
        changed(scope, "user created", format_args!("{name}"));
        Ok(page(
            StatusCode::OK,
            "New user",
            "<p>Successfully signed up user. <a href=\"/\">Back to experiments</a></p>\n",
        ))
    }
}
