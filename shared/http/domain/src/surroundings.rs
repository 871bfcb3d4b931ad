//! The surroundings of a domain where it is mounted.

use std::path::PathBuf;
use std::sync::Arc;

use access::{AdmitEverybody, Authorizer, InWorkspaces};
use artifact_store::Artifacts;
use mlflow_api::UserName;
use mlflow_api::auth::Level;
use permissions::{Basic, Signed};
use service::Calls;
use table::Table;

use crate::{Failure, Function, Setting};

/// The callers whom the server itself admits.
const ACCESS_VARIABLE: &str = "ACCESS_MODE";
/// The user that a principal of AWS is whom nobody has mapped to one.
const SIGNED_USER_VARIABLE: &str = "SIGNED_USER";
/// Where users have names and passwords: the level of those who are granted nothing for a resource.
const DEFAULT_VARIABLE: &str = "DEFAULT_PERMISSION";
/// The name of the role that creating experiments and models takes.
const CREATORS_VARIABLE: &str = "CREATORS";
/// The name of the table of access.
const ACCESS_TABLE_VARIABLE: &str = "ACCESS_TABLE_NAME";
/// Whether there are workspaces other than the default one.
const WORKSPACES_VARIABLE: &str = "WORKSPACES";
/// Bytes of the longest upload that is taken.
const LONGEST_VARIABLE: &str = "MAX_ARTIFACT_SIZE";
/// Where the layer's files are, unless the environment variable `UI_DIRECTORY` says otherwise.
const LAYER: &str = "/opt/build";

/// The surroundings of a domain where it is mounted: the same for all domains of a process.
#[derive(Clone)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own about the process")]
pub struct Surroundings {
    /// Decides who is calling and what callers may do. Nothing is mounted without one.
    pub authorizer: Arc<dyn Authorizer>,
    /// The table, if the process knows one.
    pub table: Option<Table>,
    /// The table of access, if users sign in.
    pub access: Option<Table>,
    /// The authorizer, if users sign in: it knows their grants.
    pub basic: Option<Basic>,
    /// Whether there are workspaces other than the default one.
    pub has_workspaces: bool,
    /// Whether nothing was ever written to the table.
    pub is_new_table: bool,
    /// Where new experiments keep artifacts, a URI.
    pub artifact_root: String,
    /// Artifacts that the server keeps.
    pub artifacts: Artifacts,
    /// Bytes of the longest upload that is taken; any number, if `None`.
    pub longest_artifact: Option<u64>,
    /// The working directory, to which relative paths of clients of the same machine are added.
    pub directory: Option<String>,
    /// Files of the user interface.
    pub ui: Option<UiFiles>,
    /// Whether answers have to fit into a Lambda's response.
    pub is_lambda: bool,
    /// Whether the domain is only called by others. Then it is not its part to prepare anything.
    pub is_only_called: bool,
    /// Endpoints of the domains that were mounted before.
    pub calls: Calls,
}

/// Where the page and its files are.
#[derive(Clone, Debug)]
pub struct UiFiles {
    /// Directory with a build of MLflow's user interface; `None` is the build in this program.
    pub directory: Option<PathBuf>,
    /// Origin of the bucket, which the page may read files from.
    pub bucket: Option<String>,
}

impl Surroundings {
    /// Surroundings with a table in use, without artifacts and without a user interface.
    #[must_use]
    pub fn new(authorizer: Arc<dyn Authorizer>, table: Table) -> Self {
        Self { table: Some(table), ..Self::bare(authorizer) }
    }

    fn bare(authorizer: Arc<dyn Authorizer>) -> Self {
        Self {
            authorizer,
            table: None,
            access: None,
            basic: None,
            has_workspaces: false,
            is_new_table: false,
            artifact_root: String::new(),
            artifacts: Artifacts::default(),
            longest_artifact: None,
            directory: None,
            ui: None,
            is_lambda: false,
            is_only_called: false,
            calls: Calls::default(),
        }
    }

    /// The same where users sign in with a name and a password. `default` is the level of users
    /// without a grant for a resource.
    #[must_use]
    pub fn with_users(self, data: Table, access: Table, default: Level) -> Self {
        let basic = Basic::new(data, access.clone(), default);
        Self { access: Some(access), ..self.with_basic(basic) }
    }

    fn with_basic(self, basic: Basic) -> Self {
        Self { authorizer: Arc::new(basic.clone()), basic: Some(basic), ..self }
    }

    /// The same where creating experiments, registered models and prompts takes a role of this name; it
    /// takes none with `None`.
    #[must_use]
    pub fn with_creators(self, creators: Option<String>) -> Self {
        match self.basic.clone() {
            Some(basic) => self.with_basic(basic.with_creators(creators)),
            None => self,
        }
    }

    /// The same with workspaces other than the default one.
    #[must_use]
    pub fn with_workspaces(self) -> Self {
        Self { authorizer: InWorkspaces::over(self.authorizer), has_workspaces: true, ..self }
    }

    /// The same for a gateway that has checked who signed some of the requests.
    #[must_use]
    pub fn with_signed(self, signed: Signed) -> Self {
        match self.basic.clone() {
            Some(basic) => self.with_basic(basic.with_signed(signed)),
            None => self,
        }
    }

    /// The same with artifacts that the server keeps, and the URI below which new experiments keep theirs.
    #[must_use]
    pub fn with_artifacts(self, root: &str, artifacts: Artifacts) -> Self {
        Self { artifact_root: root.to_owned(), artifacts, ..self }
    }

    /// The same with endpoints that domains may call.
    #[must_use]
    pub fn calling(self, calls: Calls) -> Self {
        Self { calls, ..self }
    }

    /// The table.
    ///
    /// # Errors
    /// The function has no rights on it.
    pub fn table(&self) -> Result<&Table, Failure> {
        self.table.as_ref().ok_or_else(|| "this function does not know the table".into())
    }

    /// The surroundings from the environment of a Lambda, as far as these functions have it. They
    /// are `ACCESS_MODE`, the table ([`Table::from_environment`]), and what each [`Setting`] names.
    /// The table's layout is looked at, so that the connection exists before the first call. One
    /// request, two where the table is empty.
    ///
    /// # Errors
    /// A variable is missing or makes no sense, the table cannot be reached, or it has the layout
    /// of a later version.
    pub async fn from_environment(functions: &[&Function]) -> Result<Self, Failure> {
        let mode = Mode::of(variable(ACCESS_VARIABLE).as_deref())?;
        let mut around = Self { is_lambda: true, ..Self::bare(Arc::new(AdmitEverybody)) };
        if mode != Mode::None {
            let data = Table::from_environment().await?;
            let access =
                variable(ACCESS_TABLE_VARIABLE).ok_or("the environment variable ACCESS_TABLE_NAME is not set")?;
            let access = data.beside(access);
            around = around.with_users(data, access, default_level(variable(DEFAULT_VARIABLE).as_deref())?);
            around = around.with_creators(variable(CREATORS_VARIABLE));
            if mode == Mode::Both {
                around = around.with_signed(signed(variable(SIGNED_USER_VARIABLE).as_deref())?);
            }
        }
        if has_workspaces(variable(WORKSPACES_VARIABLE).as_deref())? {
            around = around.with_workspaces();
        }
        let have = |setting| functions.iter().any(|function| function.settings.contains(&setting));
        if have(Setting::Artifacts) {
            around.artifact_root =
                variable("ARTIFACT_ROOT").ok_or("the environment variable ARTIFACT_ROOT is not set")?;
            around.artifacts = Artifacts::from_environment(&around.artifact_root);
        }
        if have(Setting::LongestArtifact) {
            around.longest_artifact = longest(variable(LONGEST_VARIABLE).as_deref())?;
        }
        if have(Setting::ArtifactsOrigin) {
            let directory = variable("UI_DIRECTORY").unwrap_or_else(|| LAYER.to_owned());
            around.ui = Some(UiFiles { directory: Some(directory.into()), bucket: variable("ARTIFACTS_ORIGIN") });
        }
        if functions.iter().any(|function| function.table.is_some()) {
            let table = Table::from_environment().await?;
            around.is_new_table = !entities::layout::check(&table).await?;
            around.table = Some(table);
        }
        Ok(around)
    }
}

/// A variable that is set and not empty.
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// How it is decided who is calling.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    /// Not at all: the gateway has admitted every caller.
    None,
    /// Users have names and passwords.
    Basic,
    /// Of two gateways one admits who signs, and to the other users sign in. Which one a request came through, the gateway itself says.
    Both,
}

impl Mode {
    /// The mode that the variable names. There is no default: a function that admits everybody does so because it was told to.
    fn of(variable: Option<&str>) -> Result<Self, String> {
        match variable {
            Some("none") => Ok(Self::None),
            Some("basic") => Ok(Self::Basic),
            Some("both") => Ok(Self::Both),
            Some(other) => Err(format!("{ACCESS_VARIABLE} is none, basic or both, and not {other}")),
            None => Err(format!("the environment variable {ACCESS_VARIABLE} is not set")),
        }
    }
}

/// Whether there are workspaces: not where the variable is missing.
fn has_workspaces(variable: Option<&str>) -> Result<bool, String> {
    match variable {
        None | Some("off") => Ok(false),
        Some("on") => Ok(true),
        Some(other) => Err(format!("{WORKSPACES_VARIABLE} is on or off, and not {other}")),
    }
}

/// The level that the variable names: nothing where it is missing or empty.
fn default_level(variable: Option<&str>) -> Result<Level, String> {
    let Some(name) = variable else { return Ok(Level::NoPermissions) };
    let level = Level::from_name(name).filter(|level| *level != Level::Deny);
    level.ok_or_else(|| format!("{DEFAULT_VARIABLE} is READ, USE, EDIT, MANAGE or NO_PERMISSIONS, and not {name}"))
}

/// The user for principals that are mapped to none.
fn signed(variable: Option<&str>) -> Result<Signed, String> {
    let user = variable.map(|name| UserName::named(name).ok_or(format!("{SIGNED_USER_VARIABLE} is no name: {name}")));
    Ok(Signed { unmapped: user.transpose()? })
}

/// The limit that the variable sets: none where it is missing or empty.
fn longest(variable: Option<&str>) -> Result<Option<u64>, String> {
    let Some(bytes) = variable else { return Ok(None) };
    // A limit that cannot be read is not taken for none.
    bytes.parse().map(Some).map_err(|_| format!("{LONGEST_VARIABLE} is not a number of bytes: {bytes}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_a_number_or_not_there() {
        assert_eq!((longest(None), longest(Some("1048576"))), (Ok(None), Ok(Some(1 << 20))));
        for wrong in ["-1", "1 MB", "1.5", "99999999999999999999"] {
            assert_eq!(longest(Some(wrong)), Err(format!("MAX_ARTIFACT_SIZE is not a number of bytes: {wrong}")));
        }
    }

    #[test]
    fn workspaces_are_on_or_off() {
        assert_eq!((has_workspaces(None), has_workspaces(Some("on"))), (Ok(false), Ok(true)));
        assert!(has_workspaces(Some("true")).is_err());
    }

    #[test]
    fn nobody_is_admitted_unless_it_is_said() {
        let modes = ["none", "basic", "both"].map(|mode| Mode::of(Some(mode)));
        assert_eq!(modes, [Ok(Mode::None), Ok(Mode::Basic), Ok(Mode::Both)]);
        let refusal = |mode| Mode::of(mode).err();
        assert_eq!(refusal(None).as_deref(), Some("the environment variable ACCESS_MODE is not set"));
        assert_eq!(refusal(Some("NONE")).as_deref(), Some("ACCESS_MODE is none, basic or both, and not NONE"));
        assert_eq!((default_level(None), default_level(Some("READ"))), (Ok(Level::NoPermissions), Ok(Level::Read)));
        assert!(default_level(Some("DENY")).is_err() && default_level(Some("read")).is_err());
    }
}
