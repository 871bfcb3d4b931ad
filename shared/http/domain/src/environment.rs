//! The environment in which domains are mounted.

use std::path::PathBuf;
use std::sync::Arc;

use access::{AllowAll, Authorizer, WorkspaceAuthorizer};
use artifact_store::ArtifactStore;
use entities::layout::CURRENT_LAYOUT;
use entities::webhooks::WebhookDeliverer;
use mlflow_api::UserName;
use mlflow_api::auth::PermissionLevel;
use outbound::{OutboundPolicy, Schemes};
use permissions::{PasswordPolicy, SignedRequests, UserAuthorizer};
use secrets::{ClientSecrets, KmsKey, ParameterStore, SecretKeys};
use service::InternalCalls;
use table::Table;

use crate::{EnvironmentSetting, Function, MountFailure};

/// How callers are authenticated (see [`AccessMode`]).
const ACCESS_VARIABLE: &str = "ACCESS_MODE";
/// The user that unmapped IAM principals act as.
const SIGNED_USER_VARIABLE: &str = "SIGNED_USER";
/// The level of users without a grant for a resource.
const DEFAULT_PERMISSION_VARIABLE: &str = "DEFAULT_PERMISSION";
/// Name of the role that is required to create experiments, registered models, prompts and MCP
/// servers.
const CREATORS_VARIABLE: &str = "CREATORS";
/// Name of the access table.
const ACCESS_TABLE_VARIABLE: &str = "ACCESS_TABLE_NAME";
/// Whether users can sign in with passwords: `on` or `off`.
const PASSWORDS_VARIABLE: &str = "PASSWORDS";
/// Names of the administrators who can sign in with passwords even if others cannot, separated by
/// commas.
const PASSWORD_ADMINISTRATORS_VARIABLE: &str = "PASSWORD_ADMINISTRATORS";
/// Path in Parameter Store below which the client secrets of identity providers are stored.
pub const SIGN_ON_SECRETS_VARIABLE: &str = "SIGN_ON_SECRETS";
/// Whether there are workspaces other than the default one.
const WORKSPACES_VARIABLE: &str = "WORKSPACES";
/// Maximum size of an upload, in bytes.
const MAX_ARTIFACT_SIZE_VARIABLE: &str = "MAX_ARTIFACT_SIZE";
/// ARN of the KMS key that encrypts the secrets that users store.
const SECRETS_KEY_VARIABLE: &str = "SECRETS_KEY";
/// Whether webhooks may have `http` URLs: `on` or `off`.
const ALLOW_HTTP_VARIABLE: &str = "WEBHOOKS_ALLOW_HTTP";
/// Whether webhooks may have addresses of this machine and of private networks: `on` or `off`.
const ALLOW_PRIVATE_VARIABLE: &str = "WEBHOOKS_ALLOW_PRIVATE_ADDRESSES";
/// Directory of the layer's files, unless the environment variable `UI_DIRECTORY` overrides it.
const UI_LAYER_DIRECTORY: &str = "/opt/build";

/// The environment in which domains are mounted, shared by all domains of a process.
#[derive(Clone)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own about the process")]
pub struct Environment {
    /// Authenticates callers and decides what they may do. Required to mount a domain.
    pub authorizer: Arc<dyn Authorizer>,
    /// The data table, if the process uses it.
    pub table: Option<Table>,
    /// The access table, if users sign in.
    pub access: Option<Table>,
    /// The authorizer, if users sign in. It gives access to their grants.
    pub user_authorizer: Option<UserAuthorizer>,
    /// Whether there are workspaces other than the default one.
    pub has_workspaces: bool,
    /// Whether the table has never been written to.
    pub is_new_table: bool,
    /// Layout of the table.
    pub layout: i64,
    /// URI below which new experiments store artifacts.
    pub artifact_root: String,
    /// Artifacts that the server stores.
    pub artifacts: ArtifactStore,
    /// Maximum size of an upload in bytes, or `None` for no limit.
    pub max_artifact_bytes: Option<u64>,
    /// The working directory. Relative paths from clients on the same machine are resolved against
    /// it.
    pub working_directory: Option<String>,
    /// Files of the user interface.
    pub ui: Option<UiFiles>,
    /// Whether responses have to fit into a Lambda's response.
    pub is_lambda: bool,
    /// Whether the domain is only called by other domains. If so, it does not prepare anything
    /// itself.
    pub is_only_called: bool,
    /// Endpoints of the domains that were mounted before this one.
    pub calls: InternalCalls,
    /// Keys that seal the secrets that users store.
    pub secret_keys: Arc<SecretKeys>,
    /// Client secrets of the identity providers at which users sign in.
    pub client_secrets: Arc<ClientSecrets>,
    /// The addresses that users may have requests sent to.
    pub outbound_policy: OutboundPolicy,
    /// Invokes the function that delivers events to webhooks.
    pub deliverer: Option<Arc<dyn WebhookDeliverer>>,
}

/// Location of the user interface's files.
#[derive(Clone, Debug)]
pub struct UiFiles {
    /// Directory with a build of MLflow's user interface; `None` for the build that is embedded in
    /// the program.
    pub directory: Option<PathBuf>,
    /// Origin of the bucket that the page may read files from.
    pub bucket: Option<String>,
}

impl Environment {
    /// Creates an environment with an existing data table, without artifacts and without a user
    /// interface.
    #[must_use]
    pub fn new(authorizer: Arc<dyn Authorizer>, table: Table) -> Self {
        Self { table: Some(table), ..Self::bare(authorizer) }
    }

    fn bare(authorizer: Arc<dyn Authorizer>) -> Self {
        Self {
            authorizer,
            table: None,
            access: None,
            user_authorizer: None,
            has_workspaces: false,
            is_new_table: false,
            layout: CURRENT_LAYOUT,
            artifact_root: String::new(),
            artifacts: ArtifactStore::default(),
            max_artifact_bytes: None,
            working_directory: None,
            ui: None,
            is_lambda: false,
            is_only_called: false,
            calls: InternalCalls::default(),
            secret_keys: Arc::default(),
            client_secrets: Arc::default(),
            outbound_policy: OutboundPolicy::default(),
            deliverer: None,
        }
    }

    /// Enables users, who sign in with a name and a password. `default` is the level of users
    /// without a grant for a resource.
    #[must_use]
    pub fn with_users(self, data: Table, access: Table, default: PermissionLevel) -> Self {
        let basic = UserAuthorizer::new(data, access.clone(), default);
        Self { access: Some(access), ..self.with_user_authorizer(basic) }
    }

    fn with_user_authorizer(self, basic: UserAuthorizer) -> Self {
        Self { authorizer: Arc::new(basic.clone()), user_authorizer: Some(basic), ..self }
    }

    /// Requires a role with this name for the creation of experiments, registered models, prompts
    /// and MCP servers. With `None`, no role is required.
    #[must_use]
    pub fn with_creators(self, creators: Option<String>) -> Self {
        match self.user_authorizer.clone() {
            Some(basic) => self.with_user_authorizer(basic.with_creators(creators)),
            None => self,
        }
    }

    /// Restricts the users who may authenticate with a password.
    #[must_use]
    pub fn with_password_policy(self, policy: PasswordPolicy) -> Self {
        match self.user_authorizer.clone() {
            Some(basic) => self.with_user_authorizer(basic.with_password_policy(policy)),
            None => self,
        }
    }

    /// Enables workspaces other than the default one.
    #[must_use]
    pub fn with_workspaces(self) -> Self {
        Self { authorizer: WorkspaceAuthorizer::wrap(self.authorizer), has_workspaces: true, ..self }
    }

    /// Accepts requests whose signatures a gateway has verified.
    #[must_use]
    pub fn with_signed_requests(self, signed: SignedRequests) -> Self {
        match self.user_authorizer.clone() {
            Some(basic) => self.with_user_authorizer(basic.with_signed_requests(signed)),
            None => self,
        }
    }

    /// Sets the artifacts that the server stores, and the URI below which new experiments store
    /// theirs.
    #[must_use]
    pub fn with_artifacts(self, root: &str, artifacts: ArtifactStore) -> Self {
        Self { artifact_root: root.to_owned(), artifacts, ..self }
    }

    /// Sets the endpoints that domains may call.
    #[must_use]
    pub fn with_calls(self, calls: InternalCalls) -> Self {
        Self { calls, ..self }
    }

    /// Returns the data table.
    ///
    /// # Errors
    /// Returns an error if the function has no access to the table.
    pub fn table(&self) -> Result<&Table, MountFailure> {
        self.table.as_ref().ok_or_else(|| "this function has no access to the table".into())
    }

    /// Creates the environment of a Lambda from the environment variables that these functions
    /// have: `ACCESS_MODE`, the variables of the table ([`Table::from_environment`]), and the
    /// variable of each [`EnvironmentSetting`]. Checks the table's layout, so that a connection
    /// exists before the first call. Takes one request, or two if the table is empty.
    ///
    /// # Errors
    /// Returns an error if a variable is missing or invalid, if the table is unreachable, or if it
    /// has the layout of a later version.
    pub async fn from_environment(functions: &[&Function]) -> Result<Self, MountFailure> {
        let mode = AccessMode::of(variable(ACCESS_VARIABLE).as_deref())?;
        let mut around = Self { is_lambda: true, ..Self::bare(Arc::new(AllowAll)) };
        if mode != AccessMode::None {
            let data = Table::from_environment().await?;
            let access =
                variable(ACCESS_TABLE_VARIABLE).ok_or("the environment variable ACCESS_TABLE_NAME is not set")?;
            let access = data.beside(access);
            around = around.with_users(data, access, default_level(variable(DEFAULT_PERMISSION_VARIABLE).as_deref())?);
            around = around.with_creators(variable(CREATORS_VARIABLE));
            around = around.with_password_policy(password_policy()?);
            if mode == AccessMode::Both {
                around = around.with_signed_requests(signed_requests(variable(SIGNED_USER_VARIABLE).as_deref())?);
            }
        }
        if has_workspaces(variable(WORKSPACES_VARIABLE).as_deref())? {
            around = around.with_workspaces();
        }
        let have = |setting| functions.iter().any(|function| function.settings.contains(&setting));
        if have(EnvironmentSetting::Artifacts) {
            around.artifact_root =
                variable("ARTIFACT_ROOT").ok_or("the environment variable ARTIFACT_ROOT is not set")?;
            around.artifacts = ArtifactStore::from_environment(&around.artifact_root);
        }
        if have(EnvironmentSetting::MaxArtifactSize) {
            around.max_artifact_bytes = max_artifact_bytes(variable(MAX_ARTIFACT_SIZE_VARIABLE).as_deref())?;
        }
        if have(EnvironmentSetting::ArtifactsOrigin) {
            let directory = variable("UI_DIRECTORY").unwrap_or_else(|| UI_LAYER_DIRECTORY.to_owned());
            around.ui = Some(UiFiles { directory: Some(directory.into()), bucket: variable("ARTIFACTS_ORIGIN") });
        }
        if have(EnvironmentSetting::SealsSecrets)
            && let Some(key) = variable(SECRETS_KEY_VARIABLE)
        {
            around.secret_keys = Arc::new(SecretKeys::Kms(KmsKey::new(key)));
        }
        let signs_on =
            |function: &&Function| function.secrets.iter().any(|secret| secret.variable == SIGN_ON_SECRETS_VARIABLE);
        if functions.iter().any(signs_on)
            && let Some(path) = variable(SIGN_ON_SECRETS_VARIABLE)
        {
            around.client_secrets = Arc::new(ClientSecrets::ParameterStore(Box::new(ParameterStore::new(path))));
        }
        around.outbound_policy = outbound_policy()?;
        if functions.iter().any(|function| function.table.is_some()) {
            let table = Table::from_environment().await?;
            let layout = entities::layout::find(&table).await?;
            around.is_new_table = layout.is_none();
            around.layout = layout.unwrap_or(CURRENT_LAYOUT);
            around.table = Some(table);
        }
        Ok(around)
    }
}

/// Returns the rules for requests to addresses that users choose. `template.yaml` sets neither of
/// the two variables, so functions in AWS send such requests only over `https` and to public
/// addresses. `make watch` sets both, for receivers on the same machine.
///
/// # Errors
/// Returns an error if a variable is neither `on` nor `off`.
pub fn outbound_policy() -> Result<OutboundPolicy, MountFailure> {
    let is_on = |name| match variable(name).as_deref() {
        None | Some("off") => Ok(false),
        Some("on") => Ok(true),
        Some(other) => Err(format!("{name} must be on or off, not {other}")),
    };
    let schemes = if is_on(ALLOW_HTTP_VARIABLE)? { Schemes::HttpsAndHttp } else { Schemes::Https };
    Ok(OutboundPolicy { schemes, allow_private_peers: is_on(ALLOW_PRIVATE_VARIABLE)? })
}

/// Returns the value of a variable, if it is set and not empty.
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// How callers are authenticated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AccessMode {
    /// Not by the server. The gateway has admitted every caller.
    None,
    /// Users have names and passwords.
    Basic,
    /// Both, depending on the API that a request came through, which the gateway reports: one API
    /// admits callers that sign their requests, and at the other, users sign in.
    Both,
}

impl AccessMode {
    /// Parses the access mode. There is no default, so that a function admits everyone only if that
    /// was configured explicitly.
    fn of(variable: Option<&str>) -> Result<Self, String> {
        match variable {
            Some("none") => Ok(Self::None),
            Some("basic") => Ok(Self::Basic),
            Some("both") => Ok(Self::Both),
            Some(other) => Err(format!("{ACCESS_VARIABLE} must be none, basic or both, not {other}")),
            None => Err(format!("the environment variable {ACCESS_VARIABLE} is not set")),
        }
    }
}

/// Checks whether workspaces are enabled. They are disabled if the variable is missing.
fn has_workspaces(variable: Option<&str>) -> Result<bool, String> {
    match variable {
        None | Some("off") => Ok(false),
        Some("on") => Ok(true),
        Some(other) => Err(format!("{WORKSPACES_VARIABLE} must be on or off, not {other}")),
    }
}

/// Parses the level of users without a grant. Returns `NO_PERMISSIONS` if the variable is missing
/// or empty.
fn default_level(variable: Option<&str>) -> Result<PermissionLevel, String> {
    let Some(name) = variable else { return Ok(PermissionLevel::NoPermissions) };
    let level = PermissionLevel::from_name(name).filter(|level| *level != PermissionLevel::Deny);
    level.ok_or_else(|| {
        format!("{DEFAULT_PERMISSION_VARIABLE} must be READ, USE, EDIT, MANAGE or NO_PERMISSIONS, not {name}")
    })
}

/// Parses the users who may authenticate with a password.
fn password_policy() -> Result<PasswordPolicy, String> {
    let [passwords, administrators] = [PASSWORDS_VARIABLE, PASSWORD_ADMINISTRATORS_VARIABLE].map(variable);
    PasswordPolicy::parse(passwords.as_deref(), administrators.as_deref())
        .map_err(|error| format!("{PASSWORDS_VARIABLE} and {PASSWORD_ADMINISTRATORS_VARIABLE}: {error}"))
}

/// Parses the user that unmapped principals act as.
fn signed_requests(variable: Option<&str>) -> Result<SignedRequests, String> {
    let user = variable
        .map(|name| UserName::named(name).ok_or(format!("{SIGNED_USER_VARIABLE} is not a valid user name: {name}")));
    Ok(SignedRequests { unmapped_user: user.transpose()? })
}

/// Parses the maximum size of an upload. Returns `None` if the variable is missing or empty.
fn max_artifact_bytes(variable: Option<&str>) -> Result<Option<u64>, String> {
    let Some(bytes) = variable else { return Ok(None) };
    // An invalid limit must not be treated as no limit.
    bytes.parse().map(Some).map_err(|_| format!("{MAX_ARTIFACT_SIZE_VARIABLE} is not a number of bytes: {bytes}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_a_number_or_not_there() {
        assert_eq!((max_artifact_bytes(None), max_artifact_bytes(Some("1048576"))), (Ok(None), Ok(Some(1 << 20))));
        for wrong in ["-1", "1 MB", "1.5", "99999999999999999999"] {
            assert_eq!(
                max_artifact_bytes(Some(wrong)),
                Err(format!("MAX_ARTIFACT_SIZE is not a number of bytes: {wrong}"))
            );
        }
    }

    #[test]
    fn workspaces_are_on_or_off() {
        assert_eq!((has_workspaces(None), has_workspaces(Some("on"))), (Ok(false), Ok(true)));
        assert!(has_workspaces(Some("true")).is_err());
    }

    #[test]
    fn nobody_is_admitted_unless_it_is_said() {
        let modes = ["none", "basic", "both"].map(|mode| AccessMode::of(Some(mode)));
        assert_eq!(modes, [Ok(AccessMode::None), Ok(AccessMode::Basic), Ok(AccessMode::Both)]);
        let refusal = |mode| AccessMode::of(mode).err();
        assert_eq!(refusal(None).as_deref(), Some("the environment variable ACCESS_MODE is not set"));
        assert_eq!(refusal(Some("NONE")).as_deref(), Some("ACCESS_MODE must be none, basic or both, not NONE"));
        assert_eq!(
            (default_level(None), default_level(Some("READ"))),
            (Ok(PermissionLevel::NoPermissions), Ok(PermissionLevel::Read))
        );
        assert!(default_level(Some("DENY")).is_err() && default_level(Some("read")).is_err());
    }
}
