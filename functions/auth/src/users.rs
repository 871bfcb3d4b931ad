//! Users: their names and passwords, and who administers.

use std::collections::BTreeSet;

use access::{Action, Caller, Credentials, Needs, Only, Resource, Restriction, Scope, Target};
use futures::stream::{self, StreamExt, TryStreamExt};
use mlflow_api::auth::{CurrentUser, Done, ListedUser, OneUser, Role, Users};
use mlflow_api::{Error, ErrorCode, Request, Result, UserName, python};
use serde_json::Value;
use service::{Answer, Endpoint, IntoAnswer};

use crate::audit::changed;
use crate::names::new_user_name;
use crate::parameters::{Parameters, is_json};
use crate::store::{Found, Store};

/// Users whose roles are read at a time.
const AT_ONCE: usize = 16;
/// Characters of the shortest password (`_validate_password`).
const SHORTEST_PASSWORD: usize = 12;
/// Bytes of the longest. Hashing takes longer the longer it is, and MLflow has no limit.
const LONGEST_PASSWORD: usize = 1_024;

/// The name of a user in a request. There may be no such user.
pub(crate) struct Named(String);

impl Named {
    pub(crate) fn of(parameters: &Parameters) -> Result<Self> {
        parameters.text("username").map(Self)
    }

    /// The need of an action on the user. A text that is no user's name belongs to nobody, and only
    /// administrators are told so.
    pub(crate) fn needs(&self, action: Action) -> Needs {
        Needs::of(action, [UserName::named(&self.0).map_or(Target::Nothing(Resource::User), Target::User)])
    }

    /// The name as it was sent.
    pub(crate) fn text(&self) -> &str {
        &self.0
    }

    /// The user's name.
    ///
    /// # Errors
    /// `RESOURCE_DOES_NOT_EXIST` for a text that is no user's name.
    pub(crate) fn name(&self) -> Result<UserName> {
        UserName::named(&self.0).ok_or_else(|| UserName::not_found(&self.0))
    }
}

/// Refuses a password that is too short or too long.
///
/// # Errors
/// `INVALID_PARAMETER_VALUE`.
pub fn check_password(password: &str) -> Result<()> {
    if password.chars().count() < SHORTEST_PASSWORD {
        return Err(Error::invalid("Password must be at least 12 characters."));
    }
    if password.len() > LONGEST_PASSWORD {
        return Err(Error::invalid(format!("Password must be at most {LONGEST_PASSWORD} bytes.")));
    }
    Ok(())
}

pub(crate) enum Create {
    New {
        name: UserName,
        password: String,
    },
    /// MLflow's message about a request that creates no user.
    Refused(&'static str),
}

impl Endpoint for Create {
    type Store = Store;
    type Answer = Answer;

    fn read(request: &Request) -> Result<Self> {
        if !request.content_type.as_deref().is_some_and(is_json) {
            return Ok(Self::Refused("Invalid content type. Must be application/json"));
        }
        let parameters = Parameters::of(request)?;
        let (name, password) = (parameters.text("username")?, parameters.text("password")?);
        if name.is_empty() || password.is_empty() {
            return Ok(Self::Refused("Username and password cannot be empty."));
        }
        let name = new_user_name(&name)?;
        check_password(&password)?;
        Ok(Self::New { name, password })
    }

    fn needs(&self) -> Needs {
        Needs::create(Resource::User)
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<Answer> {
        match self {
            Self::New { name, password } => {
                let user = store.user_create(&name, password, false).await?;
                changed(scope, "user created", format_args!("{name}"));
                OneUser { user }.into_answer()
            }
            Self::Refused(text) => Ok(Answer::Foreign {
                status: http::StatusCode::BAD_REQUEST,
                content_type: "text/html; charset=utf-8",
                body: text.into(),
            }),
        }
    }
}

pub(crate) struct Get(Named);

impl Endpoint for Get {
    type Store = Store;
    type Answer = OneUser;

    fn read(request: &Request) -> Result<Self> {
        Named::of(&Parameters::of(request)?).map(Self)
    }

    fn needs(&self) -> Needs {
        self.0.needs(Action::Read)
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<OneUser> {
        // Administrators of workspaces see roles, and not users.
        if matches!(Seen::of(scope, store, &self.0.0).await?, Seen::In(_)) {
            return Err(denied());
        }
        Ok(OneUser { user: store.user_get(&self.0.name()?).await?.answer() })
    }
}

pub(crate) struct Current;

impl Endpoint for Current {
    type Store = Store;
    type Answer = CurrentUser;

    fn read(_: &Request) -> Result<Self> {
        Ok(Self)
    }

    fn needs(&self) -> Needs {
        Needs::nothing()
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<CurrentUser> {
        may_read_oneself(scope)?;
        let user = store.user_get(&caller(scope)?).await?.answer();
        Ok(CurrentUser { user, is_basic_auth: true })
    }
}

/// The user who calls.
pub(crate) fn caller(scope: &Scope) -> Result<UserName> {
    match scope.caller() {
        Caller::User(user) => Ok(user.name.clone()),
        // A principal of AWS that is no user has no page of its own.
        Caller::Principal(principal) => Err(UserName::not_found(principal)),
        Caller::Somebody => Err(Error::internal("a call of nobody in particular")),
    }
}

/// Refuses credentials that are for one experiment or for sending traces: they are not told what
/// else their user has.
///
/// # Errors
/// `PERMISSION_DENIED`.
pub(crate) fn may_read_oneself(scope: &Scope) -> Result<()> {
    let Restriction { experiment, only } = scope.identity().restriction;
    if experiment.is_none() && only != Only::Ingest {
        return Ok(());
    }
    Err(Error::new(ErrorCode::PermissionDenied, "Permission denied"))
}

/// The part of a user's roles that the caller may see.
pub(crate) enum Seen {
    /// All of it: the user himself, and administrators of the server.
    All,
    /// His roles in these workspaces, which the caller administers.
    In(BTreeSet<String>),
}

impl Seen {
    /// The part of this user's roles that the caller may see.
    ///
    /// # Errors
    /// The table cannot be read.
    pub(crate) async fn of(scope: &Scope, store: &Store, user: &str) -> Result<Self> {
        Ok(match scope.caller() {
            Caller::User(caller) if caller.is_admin || caller.name.as_str() == user => Self::All,
            Caller::Principal(_) => Self::All,
            Caller::Somebody => Self::In(BTreeSet::new()),
            Caller::User(caller) => Self::In(store.administered_by(caller).await?),
        })
    }

    /// Those of his roles that may be seen.
    pub(crate) fn roles(&self, mut roles: Vec<Role>) -> Vec<Role> {
        if let Self::In(workspaces) = self {
            roles.retain(|role| workspaces.contains(&role.workspace));
        }
        roles
    }

    /// The same for the user whom the request names. A caller who administers none of the user's
    /// workspaces is not told whether the user exists (`validate_can_view_user_roles`).
    ///
    /// # Errors
    /// `PERMISSION_DENIED`, and `RESOURCE_DOES_NOT_EXIST` where all may be seen.
    pub(crate) async fn roles_of(scope: &Scope, store: &Store, named: &Named) -> Result<(Found, Vec<Role>)> {
        let seen = Self::of(scope, store, &named.0).await?;
        let roles = async {
            let account = store.user_get(&named.name()?).await?;
            let roles = seen.roles(store.roles_of(&account).await?);
            Ok::<_, Error>((account, roles))
        };
        match (&seen, roles.await) {
            (Self::All, found) => found,
            (Self::In(_), Ok((account, roles))) if !roles.is_empty() => Ok((account, roles)),
            (Self::In(_), Err(error)) if error.code != ErrorCode::ResourceDoesNotExist => Err(error),
            (Self::In(_), _) => Err(denied()),
        }
    }
}

/// MLflow's refusal.
pub(crate) fn denied() -> Error {
    Error::new(ErrorCode::PermissionDenied, "Permission denied")
}

pub(crate) struct List;

impl Endpoint for List {
    type Store = Store;
    type Answer = Users;

    fn read(_: &Request) -> Result<Self> {
        Ok(Self)
    }

    fn needs(&self) -> Needs {
        Needs::read(Target::Any(Resource::User))
    }

    /// Everybody sees all users. Only administrators see the roles of others.
    async fn act(self, scope: &Scope, store: &Store) -> Result<Users> {
        let listed = store.users().await?.into_iter().map(|account| async move {
            let roles = match Seen::of(scope, store, account.user.name.as_str()).await? {
                Seen::In(none) if none.is_empty() => Vec::new(),
                seen => seen.roles(store.roles_of(&account).await?),
            };
            Ok::<_, Error>(ListedUser { user: account.answer(), roles })
        });
        let listed = stream::iter(listed.collect::<Vec<_>>()).buffered(AT_ONCE);
        Ok(Users { users: listed.try_collect().await? })
    }
}

pub(crate) struct UpdatePassword {
    user: Named,
    password: String,
    current: Option<String>,
}

impl Endpoint for UpdatePassword {
    type Store = Store;
    type Answer = Done;

    fn read(request: &Request) -> Result<Self> {
        let parameters = Parameters::of(request)?;
        let current = parameters.get("current_password").and_then(Value::as_str).filter(|text| !text.is_empty());
        Ok(Self {
            user: Named::of(&parameters)?,
            password: parameters.text("password")?,
            current: current.map(str::to_owned),
        })
    }

    fn needs(&self) -> Needs {
        self.user.needs(Action::Update)
    }

    /// A user who changes his own password has to know it: an unattended browser is not enough.
    async fn act(self, scope: &Scope, store: &Store) -> Result<Done> {
        let name = self.user.name()?;
        let from = scope.identity().sent.as_ref().and_then(|sent| sent.from);
        if scope.caller().user().is_some_and(|user| user.name == name) {
            let Some(current) = self.current else {
                return Err(Error::invalid("Current password is required when changing your own password."));
            };
            if !store.has_password(&name, current.clone(), from).await? {
                return Err(Error::invalid("Current password does not match."));
            }
            if self.password == current {
                return Err(Error::invalid("New password must differ from the current password."));
            }
        }
        check_password(&self.password)?;
        match scope.identity().sent.as_ref().map(|sent| &sent.credentials) {
            // All sessions end with the password but the one in which it is changed.
            Some(Credentials::Session(user, digest)) if *user == name => {
                store.user_set_password_in(&name, self.password, digest).await?;
            }
            _ => store.user_set_password(&name, self.password).await?,
        }
        changed(scope, "password changed", format_args!("{name}"));
        Ok(Done {})
    }
}

pub(crate) struct UpdateAdmin {
    user: Named,
    is_admin: bool,
}

impl Endpoint for UpdateAdmin {
    type Store = Store;
    type Answer = Done;

    fn read(request: &Request) -> Result<Self> {
        let parameters = Parameters::of(request)?;
        let user = Named::of(&parameters)?;
        match parameters.required("is_admin")? {
            Value::Bool(is_admin) => Ok(Self { user, is_admin: *is_admin }),
            other => {
                Err(Error::invalid(format!("Parameter 'is_admin' must be a boolean. Got: {}", python::data(other))))
            }
        }
    }

    fn needs(&self) -> Needs {
        self.user.needs(Action::Manage)
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<Done> {
        let name = self.user.name()?;
        store.user_set_admin(&name, self.is_admin).await?;
        let event = if self.is_admin { "made administrator" } else { "no longer administrator" };
        changed(scope, event, format_args!("{name}"));
        Ok(Done {})
    }
}

pub(crate) struct Delete(Named);

impl Endpoint for Delete {
    type Store = Store;
    type Answer = Done;

    fn read(request: &Request) -> Result<Self> {
        Named::of(&Parameters::of(request)?).map(Self)
    }

    fn needs(&self) -> Needs {
        self.0.needs(Action::Delete)
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<Done> {
        let name = self.0.name()?;
        if scope.caller().user().is_some_and(|user| user.name == name) {
            return Err(Error::new(
                ErrorCode::BadRequest,
                "Users cannot delete their own account. Ask another admin to delete this user instead.",
            ));
        }
        store.user_delete(&name).await?;
        changed(scope, "user deleted", format_args!("{name}"));
        Ok(Done {})
    }
}
