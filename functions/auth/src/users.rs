//! Endpoints for users, their passwords, and administrators of the server.

use std::collections::BTreeSet;

use access::{Action, AllowedActions, Caller, Credentials, Needs, Resource, Restriction, Scope, Target};
use futures::stream::{self, StreamExt, TryStreamExt};
use mlflow_api::auth::{CurrentUserResponse, EmptyAuthResponse, Role, UserResponse, UserWithRoles, UsersResponse};
use mlflow_api::{Error, ErrorCode, Request, Result, UserName, python};
use serde_json::Value;
use service::{Endpoint, EndpointResponse, IntoEndpointResponse};

use crate::audit_log::changed;
use crate::parameters::{Parameters, is_json};
use crate::store::{Store, StoredUser};
use crate::user_names::new_user_name;

/// Number of users whose roles are read concurrently.
const CONCURRENCY: usize = 16;
/// Minimum length of a password in characters (`_validate_password`).
const MIN_PASSWORD_LENGTH: usize = 12;
/// Maximum length of a password in bytes. MLflow has no limit, but hashing time grows with the
/// length.
const MAX_PASSWORD_BYTES: usize = 1_024;

/// A user's name as sent in a request. The user may not exist.
pub(crate) struct UserNameParameter(String);

impl UserNameParameter {
    pub(crate) fn of(parameters: &Parameters) -> Result<Self> {
        parameters.text("username").map(Self)
    }

    /// Returns the permission that an action on the user requires. If the text is not a valid user
    /// name, administrators get a 404, and all other callers are denied.
    pub(crate) fn needs(&self, action: Action) -> Needs {
        Needs::of(action, [UserName::named(&self.0).map_or(Target::Nothing(Resource::User), Target::User)])
    }

    /// Returns the name as it was sent.
    pub(crate) fn text(&self) -> &str {
        &self.0
    }

    /// Parses the user's name.
    ///
    /// # Errors
    /// Returns `RESOURCE_DOES_NOT_EXIST` if the text is not a valid user name.
    pub(crate) fn name(&self) -> Result<UserName> {
        UserName::named(&self.0).ok_or_else(|| UserName::not_found(&self.0))
    }
}

/// Checks the length of a password.
///
/// # Errors
/// Returns `INVALID_PARAMETER_VALUE` if it is too short or too long.
pub fn check_password(password: &str) -> Result<()> {
    if password.chars().count() < MIN_PASSWORD_LENGTH {
        return Err(Error::invalid("Password must be at least 12 characters."));
    }
    if password.len() > MAX_PASSWORD_BYTES {
        return Err(Error::invalid(format!("Password must be at most {MAX_PASSWORD_BYTES} bytes.")));
    }
    Ok(())
}

pub(crate) enum Create {
    New {
        name: UserName,
        password: String,
    },
    /// A request that is rejected without creating a user, with MLflow's error message.
    Rejected(&'static str),
}

impl Endpoint for Create {
    type Store = Store;
    type Answer = EndpointResponse;

    fn read(request: &Request) -> Result<Self> {
        if !request.content_type.as_deref().is_some_and(is_json) {
            return Ok(Self::Rejected("Invalid content type. Must be application/json"));
        }
        let parameters = Parameters::of(request)?;
        let (name, password) = (parameters.text("username")?, parameters.text("password")?);
        if name.is_empty() || password.is_empty() {
            return Ok(Self::Rejected("Username and password cannot be empty."));
        }
        let name = new_user_name(&name)?;
        check_password(&password)?;
        Ok(Self::New { name, password })
    }

    fn needs(&self) -> Needs {
        Needs::create(Resource::User)
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<EndpointResponse> {
        match self {
            Self::New { name, password } => {
                store.check_creates_passwords()?;
                let user = store.user_create(&name, password, false).await?;
                changed(scope, "user created", format_args!("{name}"));
                UserResponse { user }.into_answer()
            }
            Self::Rejected(text) => Ok(EndpointResponse::OtherProtocol {
                status: http::StatusCode::BAD_REQUEST,
                content_type: "text/html; charset=utf-8",
                body: text.into(),
            }),
        }
    }
}

pub(crate) struct Get(UserNameParameter);

impl Endpoint for Get {
    type Store = Store;
    type Answer = UserResponse;

    fn read(request: &Request) -> Result<Self> {
        UserNameParameter::of(&Parameters::of(request)?).map(Self)
    }

    fn needs(&self) -> Needs {
        self.0.needs(Action::Read)
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<UserResponse> {
        // Administrators of a workspace may see a user's roles in the workspace, but not the user.
        if matches!(VisibleRoles::of(scope, store, &self.0.0).await?, VisibleRoles::InWorkspaces(_)) {
            return Err(denied());
        }
        Ok(UserResponse { user: store.user_get(&self.0.name()?).await?.answer() })
    }
}

pub(crate) struct Current;

impl Endpoint for Current {
    type Store = Store;
    type Answer = CurrentUserResponse;

    fn read(_: &Request) -> Result<Self> {
        Ok(Self)
    }

    fn needs(&self) -> Needs {
        Needs::nothing()
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<CurrentUserResponse> {
        check_may_read_self(scope)?;
        let user = store.user_get(&caller(scope)?).await?.answer();
        Ok(CurrentUserResponse { user, is_basic_auth: true })
    }
}

/// Returns the name of the user who sent the request.
pub(crate) fn caller(scope: &Scope) -> Result<UserName> {
    match scope.caller() {
        Caller::User(user) => Ok(user.name.clone()),
        // An IAM principal that is not mapped to a user has no user page.
        Caller::Principal(principal) => Err(UserName::not_found(principal)),
        Caller::Anonymous => Err(Error::internal("the request has no user")),
    }
}

/// Rejects credentials that are limited to one experiment or to trace ingestion, because they must
/// not reveal what else their user has access to.
///
/// # Errors
/// Returns `PERMISSION_DENIED`.
pub(crate) fn check_may_read_self(scope: &Scope) -> Result<()> {
    let Restriction { experiment, actions: only } = scope.identity().restriction;
    if experiment.is_none() && only != AllowedActions::Ingest {
        return Ok(());
    }
    Err(Error::new(ErrorCode::PermissionDenied, "Permission denied"))
}

/// The part of a user's roles that the caller may see.
pub(crate) enum VisibleRoles {
    /// All roles. Visible to the user in question and to administrators of the server.
    All,
    /// The user's roles in these workspaces, which the caller administers.
    InWorkspaces(BTreeSet<String>),
}

impl VisibleRoles {
    /// Returns the part of this user's roles that the caller may see.
    ///
    /// # Errors
    /// Returns an error if the table cannot be read.
    pub(crate) async fn of(scope: &Scope, store: &Store, user: &str) -> Result<Self> {
        Ok(match scope.caller() {
            Caller::User(caller) if caller.is_admin || caller.name.as_str() == user => Self::All,
            Caller::Principal(_) => Self::All,
            Caller::Anonymous => Self::InWorkspaces(BTreeSet::new()),
            Caller::User(caller) => Self::InWorkspaces(store.administered_by(caller).await?),
        })
    }

    /// Returns the roles of the user that the caller may see.
    pub(crate) fn roles(&self, mut roles: Vec<Role>) -> Vec<Role> {
        if let Self::InWorkspaces(workspaces) = self {
            roles.retain(|role| workspaces.contains(&role.workspace));
        }
        roles
    }

    /// Returns the user that the request names, with the roles that the caller may see. Callers who
    /// administer none of the user's workspaces do not learn whether the user exists
    /// (`validate_can_view_user_roles`).
    ///
    /// # Errors
    /// Returns `PERMISSION_DENIED`. If the caller may see all roles and the user does not exist,
    /// returns `RESOURCE_DOES_NOT_EXIST` instead.
    pub(crate) async fn roles_of(
        scope: &Scope,
        store: &Store,
        named: &UserNameParameter,
    ) -> Result<(StoredUser, Vec<Role>)> {
        let seen = Self::of(scope, store, &named.0).await?;
        let roles = async {
            let account = store.user_get(&named.name()?).await?;
            let roles = seen.roles(store.roles_of(&account).await?);
            Ok::<_, Error>((account, roles))
        };
        match (&seen, roles.await) {
            (Self::All, found) => found,
            (Self::InWorkspaces(_), Ok((account, roles))) if !roles.is_empty() => Ok((account, roles)),
            (Self::InWorkspaces(_), Err(error)) if error.code != ErrorCode::ResourceDoesNotExist => Err(error),
            (Self::InWorkspaces(_), _) => Err(denied()),
        }
    }
}

/// Returns MLflow's error for a denied request.
pub(crate) fn denied() -> Error {
    Error::new(ErrorCode::PermissionDenied, "Permission denied")
}

pub(crate) struct List;

impl Endpoint for List {
    type Store = Store;
    type Answer = UsersResponse;

    fn read(_: &Request) -> Result<Self> {
        Ok(Self)
    }

    fn needs(&self) -> Needs {
        Needs::read(Target::Any(Resource::User))
    }

    /// All users see the list of users, but only administrators see the roles of other users in it.
    async fn act(self, scope: &Scope, store: &Store) -> Result<UsersResponse> {
        let listed = store.users().await?.into_iter().map(|account| async move {
            let roles = match VisibleRoles::of(scope, store, account.user.name.as_str()).await? {
                VisibleRoles::InWorkspaces(none) if none.is_empty() => Vec::new(),
                seen => seen.roles(store.roles_of(&account).await?),
            };
            Ok::<_, Error>(UserWithRoles { user: account.answer(), roles })
        });
        let listed = stream::iter(listed.collect::<Vec<_>>()).buffered(CONCURRENCY);
        Ok(UsersResponse { users: listed.try_collect().await? })
    }
}

pub(crate) struct UpdatePassword {
    user: UserNameParameter,
    password: String,
    current: Option<String>,
}

impl Endpoint for UpdatePassword {
    type Store = Store;
    type Answer = EmptyAuthResponse;

    fn read(request: &Request) -> Result<Self> {
        let parameters = Parameters::of(request)?;
        let current = parameters.get("current_password").and_then(Value::as_str).filter(|text| !text.is_empty());
        Ok(Self {
            user: UserNameParameter::of(&parameters)?,
            password: parameters.text("password")?,
            current: current.map(str::to_owned),
        })
    }

    fn needs(&self) -> Needs {
        self.user.needs(Action::Update)
    }

    /// Users who change their own password must send the current one, so that access to an
    /// unattended browser is not enough.
    async fn act(self, scope: &Scope, store: &Store) -> Result<EmptyAuthResponse> {
        let name = self.user.name()?;
        store.check_password_allowed(&name).await?;
        let from = scope.identity().request_credentials.as_ref().and_then(|sent| sent.client_address);
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
        match scope.identity().request_credentials.as_ref().map(|sent| &sent.credentials) {
            // A new password ends all sessions except the one in which it is changed.
            Some(Credentials::Session(user, digest)) if *user == name => {
                store.user_set_password_in(&name, self.password, digest).await?;
            }
            _ => store.user_set_password(&name, self.password).await?,
        }
        changed(scope, "password changed", format_args!("{name}"));
        Ok(EmptyAuthResponse {})
    }
}

pub(crate) struct UpdateAdmin {
    user: UserNameParameter,
    is_admin: bool,
}

impl Endpoint for UpdateAdmin {
    type Store = Store;
    type Answer = EmptyAuthResponse;

    fn read(request: &Request) -> Result<Self> {
        let parameters = Parameters::of(request)?;
        let user = UserNameParameter::of(&parameters)?;
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

    async fn act(self, scope: &Scope, store: &Store) -> Result<EmptyAuthResponse> {
        let name = self.user.name()?;
        store.user_set_admin(&name, self.is_admin).await?;
        let event = if self.is_admin { "made administrator" } else { "no longer administrator" };
        changed(scope, event, format_args!("{name}"));
        Ok(EmptyAuthResponse {})
    }
}

pub(crate) struct Delete(UserNameParameter);

impl Endpoint for Delete {
    type Store = Store;
    type Answer = EmptyAuthResponse;

    fn read(request: &Request) -> Result<Self> {
        UserNameParameter::of(&Parameters::of(request)?).map(Self)
    }

    fn needs(&self) -> Needs {
        self.0.needs(Action::Delete)
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<EmptyAuthResponse> {
        let name = self.0.name()?;
        if scope.caller().user().is_some_and(|user| user.name == name) {
            return Err(Error::new(
                ErrorCode::BadRequest,
                "Users cannot delete their own account. Ask another admin to delete this user instead.",
            ));
        }
        store.user_delete(&name).await?;
        changed(scope, "user deleted", format_args!("{name}"));
        Ok(EmptyAuthResponse {})
    }
}
