//! `mlflow-serverless admin`: creates the first administrator, grants permissions, and revokes
//! users' access. For operators with access to the tables.

mod identities;
mod providers;

use std::io::{BufRead, IsTerminal};

use access::AuthorizerWrites;
use auth::store::Store;
use clap::{Args, Subcommand};
use mlflow_api::auth::{ALL_RESOURCES, GrantType, PermissionLevel};
use mlflow_api::{ErrorCode, UserName};
use permissions::{LEASE, UserAuthorizer};

use crate::Failure;
use crate::output::print_line;
use crate::table_options::TableOptions;

/// Options of `admin`.
#[derive(Args)]
pub(crate) struct Options {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Create an administrator. The command prompts for the password, or reads it from the first
    /// line of standard input if that is not a terminal.
    Create {
        /// Name of the user.
        #[arg(value_name = "NAME")]
        user: String,
        #[command(flatten)]
        place: TableOptions,
    },
    /// Grant a user a permission level for all present and future experiments, scorers, registered
    /// models and prompts.
    Grant {
        /// Name of the user.
        #[arg(value_name = "NAME")]
        user: String,
        /// Permission level: READ, USE, EDIT, MANAGE or DENY.
        #[arg(long, default_value = "MANAGE", value_parser = level)]
        level: PermissionLevel,
        #[command(flatten)]
        place: TableOptions,
    },
    /// List the grants of all users and roles by type of resource, one per line: the user or role,
    /// the type, the resource, the level, and the workspace.
    Grants {
        /// Type of resource, which may be repeated. By default, the types whose grants were stored
        /// without effect by earlier versions: `review_queue`, `mcp_server`, `mcp_server_version`,
        /// `skill` and `skill_version`.
        #[arg(long = "type", value_name = "TYPE", value_parser = grant_type)]
        types: Vec<String>,
        #[command(flatten)]
        place: TableOptions,
    },
    /// Map an IAM principal to a user: requests signed by the principal act as that user.
    Map {
        /// ARN of the IAM user or role.
        #[arg(value_name = "ARN")]
        principal: String,
        /// Name of the user.
        #[arg(value_name = "NAME")]
        user: String,
        #[command(flatten)]
        place: TableOptions,
    },
    /// Refuse requests signed by an IAM principal, whether or not it was mapped to a user.
    Unmap {
        /// ARN of the IAM user or role.
        #[arg(value_name = "ARN")]
        principal: String,
        /// Remove the mapping instead: the principal acts as the user named by the stack's
        /// parameter `SignedUser`, or has full access if that parameter is empty.
        #[arg(long)]
        forget: bool,
        #[command(flatten)]
        place: TableOptions,
    },
    /// Show or replace the identity providers at which users sign in, and the rules that give them
    /// roles.
    Providers(providers::ProvidersOptions),
    /// Link an identity at an identity provider to a user, who can then sign in with it.
    Link {
        #[command(flatten)]
        identity: identities::LinkOptions,
        /// Create the user if it does not exist, without a password.
        #[arg(long)]
        create: bool,
    },
    /// Unlink an identity from a user: end its sessions, and take away the roles that rules of the
    /// provider gave.
    Unlink {
        #[command(flatten)]
        identity: identities::LinkOptions,
    },
    /// List the identities of all users, or of one user, one per line: the user, the issuer, and the
    /// subject.
    Identities {
        /// Name of the user.
        #[arg(value_name = "NAME")]
        user: Option<String>,
        #[command(flatten)]
        place: TableOptions,
    },
    /// Revoke a user's access by password, session and token.
    Disable {
        /// Name of the user.
        #[arg(value_name = "NAME")]
        user: String,
        #[command(flatten)]
        place: TableOptions,
    },
    /// End all sessions and revoke all tokens of all users, for example after a restore, which
    /// brings back sessions and tokens that were ended after the restored moment. Passwords stay
    /// valid.
    EndSessions {
        #[command(flatten)]
        place: TableOptions,
    },
    /// Restore the access of a disabled user.
    Enable {
        /// Name of the user.
        #[arg(value_name = "NAME")]
        user: String,
        #[command(flatten)]
        place: TableOptions,
    },
}

/// Resource types for which `admin grant` writes a grant. Resources of all other types inherit the
/// permissions of a resource of one of these types.
const GRANT_TYPES: [GrantType; 6] = [
    GrantType::Experiment,
    GrantType::Scorer,
    GrantType::RegisteredModel,
    GrantType::Prompt,
    GrantType::McpServer,
    GrantType::Skill,
];

/// Resource types whose grants earlier versions stored, although they had no effect.
const NEW_GRANT_TYPES: [&str; 5] = ["review_queue", "mcp_server", "mcp_server_version", "skill", "skill_version"];

pub(crate) async fn run(options: Options) -> Result<(), Failure> {
    match options.command {
        Command::Create { user, place } => {
            let name = auth::new_user_name(&user).map_err(|error| error.message)?;
            let password = password(&name)?;
            auth::check_password(&password).map_err(|error| error.message)?;
            let made = store(&place).await?.user_create(&name, password, true).await;
            let made = made.map_err(|error| error.cause.unwrap_or(error.message))?;
            print_line(&format!("Created administrator `{}` (user id {}).", made.username, made.id));
        }
        Command::Grant { user, level, place } => {
            let name = user_name(&user)?;
            let store = store(&place).await?;
            for kind in GRANT_TYPES {
                match store.grant(&AuthorizerWrites::nothing(), &name, kind, ALL_RESOURCES, level).await {
                    // If the user already has a grant of this kind, it is replaced, so the command
                    // can be repeated.
                    Err(error) if error.code == ErrorCode::ResourceAlreadyExists => {
                        let revoked = store.revoke(&AuthorizerWrites::nothing(), &name, kind, ALL_RESOURCES).await;
                        revoked.map_err(|error| error.cause.unwrap_or(error.message))?;
                        let granted =
                            store.grant(&AuthorizerWrites::nothing(), &name, kind, ALL_RESOURCES, level).await;
                        granted.map_err(|error| error.cause.unwrap_or(error.message))?;
                    }
                    outcome => outcome.map_err(|error| error.cause.unwrap_or(error.message))?,
                }
            }
            wait_for_lease().await;
            print_line(&format!(
                "Granted {level} on all experiments, scorers, registered models, prompts, MCP servers and skills to `{name}`."
            ));
        }
        Command::Grants { types, place } => {
            let types = if types.is_empty() { NEW_GRANT_TYPES.map(str::to_owned).to_vec() } else { types };
            list_grants(&store(&place).await?, &types).await?;
        }
        Command::Map { principal, user, place } => {
            let (principal, name) = (principal_of(&principal)?, user_name(&user)?);
            let mapped = store(&place).await?.principal_map(&principal, &name).await;
            mapped.map_err(|error| error.cause.unwrap_or(error.message))?;
            wait_for_lease().await;
            print_line(&format!("Mapped {principal} to `{name}`."));
        }
        Command::Unmap { principal, forget, place } => {
            let (principal, store) = (principal_of(&principal)?, store(&place).await?);
            let done = if forget {
                store.principal_forget(&principal).await
            } else {
                store.principal_refuse(&principal).await
            };
            done.map_err(|error| error.cause.unwrap_or(error.message))?;
            wait_for_lease().await;
            let is = if forget {
                "The user named by SignedUser applies, or full access if it is empty"
            } else {
                "Its requests are refused"
            };
            print_line(&format!("Unmapped {principal}. {is}."));
        }
        Command::Providers(options) => providers::run(&options).await?,
        Command::Link { identity, create } => identities::link(&identity, create).await?,
        Command::Unlink { identity } => identities::unlink(&identity).await?,
        Command::Identities { user, place } => identities::list(&store(&place).await?, user.as_deref()).await?,
        Command::Disable { user, place } => set_disabled(&user, &place, true).await?,
        Command::EndSessions { place } => {
            let ended = store(&place).await?.all_end().await;
            let ended = ended.map_err(|error| error.cause.unwrap_or(error.message))?;
            print_line(&format!(
                "Ended {} sessions and {} tokens. Passwords are unchanged.",
                ended.sessions, ended.tokens
            ));
        }
        Command::Enable { user, place } => set_disabled(&user, &place, false).await?,
    }
    Ok(())
}

/// Prints the grants of these resource types: first those that users have directly, then those of
/// roles. Takes two requests per user.
async fn list_grants(store: &Store, types: &[String]) -> Result<(), Failure> {
    let failed = |error: mlflow_api::Error| error.cause.unwrap_or(error.message);
    let mut owners = Vec::new();
    for user in store.users().await.map_err(failed)? {
        let direct = format!("__user_{}__", user.user.id);
        let roles = store.roles_of(&user).await.map_err(failed)?;
        let owner = format!("user {}", user.user.name);
        owners.extend(roles.into_iter().filter(|role| role.name == direct).map(|role| (owner.clone(), role)));
    }
    let roles = store.roles().await.map_err(failed)?;
    owners.extend(roles.iter().map(auth::store::StoredRole::answer).map(|role| (format!("role {}", role.name), role)));
    let mut has_any = false;
    for (owner, role) in owners {
        for grant in role.permissions.iter().filter(|grant| types.iter().any(|kind| kind == grant.resource_type)) {
            has_any = true;
            let (kind, pattern, level) = (grant.resource_type, &grant.resource_pattern, grant.permission);
            print_line(&format!("{owner}\t{kind}\t{pattern}\t{level}\t{}", role.workspace));
        }
    }
    if !has_any {
        print_line(&format!("There are no grants of type {}.", types.join(", ")));
    }
    Ok(())
}

/// Checks that a resource type of this version has this name, so that a misspelled name is not
/// mistaken for a type without grants.
fn grant_type(name: &str) -> Result<String, String> {
    let known = GrantType::ALL.iter().any(|kind| kind.name() == name);
    let names = || GrantType::ALL.iter().map(|kind| kind.name()).collect::<Vec<_>>().join(", ");
    if known { Ok(name.to_owned()) } else { Err(format!("expected one of {}", names())) }
}

async fn set_disabled(user: &str, place: &TableOptions, is_disabled: bool) -> Result<(), Failure> {
    let name = user_name(user)?;
    let set = store(place).await?.user_set_disabled(&name, is_disabled).await;
    set.map_err(|error| error.cause.unwrap_or(error.message))?;
    wait_for_lease().await;
    print_line(&format!("{} `{name}`.", if is_disabled { "Disabled" } else { "Enabled" }));
    Ok(())
}

/// Waits for [`LEASE`], the time for which processes cache access data. After that, the change is
/// visible in every process.
pub(crate) async fn wait_for_lease() {
    runtime::clock::sleep(LEASE).await;
}

pub(crate) async fn store(place: &TableOptions) -> Result<Store, Failure> {
    let (data, _engine) = place.connect().await?;
    place.create(&data, false).await?;
    store_over(place, data).await
}

/// Returns the store of the users that belong to a data table. Creates the access table if it is
/// missing.
pub(crate) async fn store_over(place: &TableOptions, data: table::Table) -> Result<Store, Failure> {
    let access = place.access_table(&data);
    place.create_access(&access, false).await?;
    Ok(Store::new(data.clone(), access.clone(), UserAuthorizer::new(data, access, PermissionLevel::NoPermissions)))
}

fn principal_of(arn: &str) -> Result<String, Failure> {
    access::principal_of(arn).ok_or_else(|| format!("{arn} is not the ARN of an IAM user or role").into())
}

pub(crate) fn user_name(text: &str) -> Result<UserName, Failure> {
    UserName::new(text).map_err(|error| error.message.into())
}

fn level(text: &str) -> Result<PermissionLevel, String> {
    let level = PermissionLevel::from_name(text).filter(|level| *level != PermissionLevel::NoPermissions);
    level.ok_or_else(|| "expected READ, USE, EDIT, MANAGE or DENY".to_owned())
}

/// Prompts twice for a password on a terminal, and reads it from standard input otherwise. The
/// password cannot be passed as a command line argument, because other users of the machine can see
/// the arguments of a process.
fn password(name: &UserName) -> Result<String, Failure> {
    if std::io::stdin().is_terminal() {
        let password = rpassword::prompt_password(format!("Password of {name}: "))?;
        if rpassword::prompt_password("Repeat the password: ")? != password {
            return Err("the passwords do not match".into());
        }
        return Ok(password);
    }
    let mut line = String::new();
    std::io::stdin().lock().read_line(&mut line)?;
    Ok(line.trim_end_matches(['\r', '\n']).to_owned())
}
