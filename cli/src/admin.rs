//! `mlflow-serverless admin`: making the first administrator, granting, and letting users in no longer, for operators who can reach the tables.

use std::io::{BufRead, IsTerminal};

use access::Along;
use auth::store::Store;
use clap::{Args, Subcommand};
use mlflow_api::auth::{EVERYTHING, GrantType, Level};
use mlflow_api::{ErrorCode, UserName};
use permissions::{Basic, LEASE};

use crate::Failure;
use crate::connect::Place;
use crate::say::say;

/// Options of `admin`.
#[derive(Args)]
pub(crate) struct Options {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Make an administrator. The command asks for the password, or reads it from the first line of the standard input.
    Create {
        /// Name of the user.
        #[arg(value_name = "NAME")]
        user: String,
        #[command(flatten)]
        place: Place,
    },
    /// Grant a user a level for all present and future experiments, scorers, registered models and
    /// prompts.
    Grant {
        /// Name of the user.
        #[arg(value_name = "NAME")]
        user: String,
        /// READ, USE, EDIT, MANAGE or DENY.
        #[arg(long, default_value = "MANAGE", value_parser = level)]
        level: Level,
        #[command(flatten)]
        place: Place,
    },
    /// Treat requests that a principal of AWS has signed as those of a user.
    Map {
        /// ARN of the user or the role.
        #[arg(value_name = "ARN")]
        principal: String,
        /// Name of the user.
        #[arg(value_name = "NAME")]
        user: String,
        #[command(flatten)]
        place: Place,
    },
    /// Stop treating them as those of a user: requests that this principal signs are refused.
    Unmap {
        /// ARN of the user or the role.
        #[arg(value_name = "ARN")]
        principal: String,
        /// Forget the principal: it becomes the user that the stack's parameter `SignedUser` names,
        /// and may do everything if that is empty.
        #[arg(long)]
        forget: bool,
        #[command(flatten)]
        place: Place,
    },
    /// Lock a user out: no password, session or token of the user is accepted.
    Disable {
        /// Name of the user.
        #[arg(value_name = "NAME")]
        user: String,
        #[command(flatten)]
        place: Place,
    },
    /// End all sessions and tokens of all users, as after a restore. A restored table has those
    /// again that ended later. Passwords stay.
    EndSessions {
        #[command(flatten)]
        place: Place,
    },
    /// Let a user in again.
    Enable {
        /// Name of the user.
        #[arg(value_name = "NAME")]
        user: String,
        #[command(flatten)]
        place: Place,
    },
}

/// The types that everything else is in or belongs to.
const TYPES: [GrantType; 4] = [GrantType::Experiment, GrantType::Scorer, GrantType::RegisteredModel, GrantType::Prompt];

pub(crate) async fn run(options: Options) -> Result<(), Failure> {
    match options.command {
        Command::Create { user, place } => {
            let name = auth::new_user_name(&user).map_err(|error| error.message)?;
            let password = password(&name)?;
            auth::check_password(&password).map_err(|error| error.message)?;
            let made = store(&place).await?.user_create(&name, password, true).await;
            let made = made.map_err(|error| error.cause.unwrap_or(error.message))?;
            say(&format!("{} may do everything now; the id is {}.", made.username, made.id));
        }
        Command::Grant { user, level, place } => {
            let name = user_name(&user)?;
            let store = store(&place).await?;
            for kind in TYPES {
                match store.grant(&Along::nothing(), &name, kind, EVERYTHING, level).await {
                    // An earlier grant is replaced, so that the command can be repeated.
                    Err(error) if error.code == ErrorCode::ResourceAlreadyExists => {
                        let revoked = store.revoke(&Along::nothing(), &name, kind, EVERYTHING).await;
                        revoked.map_err(|error| error.cause.unwrap_or(error.message))?;
                        let granted = store.grant(&Along::nothing(), &name, kind, EVERYTHING, level).await;
                        granted.map_err(|error| error.cause.unwrap_or(error.message))?;
                    }
                    outcome => outcome.map_err(|error| error.cause.unwrap_or(error.message))?,
                }
            }
            settle().await;
            say(&format!("{name} has {level} of all experiments, scorers, registered models and prompts now."));
        }
        Command::Map { principal, user, place } => {
            let (principal, name) = (principal_of(&principal)?, user_name(&user)?);
            let mapped = store(&place).await?.principal_map(&principal, &name).await;
            mapped.map_err(|error| error.cause.unwrap_or(error.message))?;
            settle().await;
            say(&format!("{principal} is {name} now."));
        }
        Command::Unmap { principal, forget, place } => {
            let (principal, store) = (principal_of(&principal)?, store(&place).await?);
            let done = if forget {
                store.principal_forget(&principal).await
            } else {
                store.principal_refuse(&principal).await
            };
            done.map_err(|error| error.cause.unwrap_or(error.message))?;
            settle().await;
            let is = if forget { "whoever SignedUser names, or may do everything" } else { "refused" };
            say(&format!("{principal} is {is} now."));
        }
        Command::Disable { user, place } => set_disabled(&user, &place, true).await?,
        Command::EndSessions { place } => {
            let ended = store(&place).await?.all_end().await;
            let ended = ended.map_err(|error| error.cause.unwrap_or(error.message))?;
            say(&format!(
                "{} sessions and {} tokens were ended. Passwords are as they were.",
                ended.sessions, ended.tokens
            ));
        }
        Command::Enable { user, place } => set_disabled(&user, &place, false).await?,
    }
    Ok(())
}

async fn set_disabled(user: &str, place: &Place, is_disabled: bool) -> Result<(), Failure> {
    let name = user_name(user)?;
    let set = store(place).await?.user_set_disabled(&name, is_disabled).await;
    set.map_err(|error| error.cause.unwrap_or(error.message))?;
    settle().await;
    say(&format!("{name} is let in {}.", if is_disabled { "no longer" } else { "again" }));
    Ok(())
}

/// Waits until every process does as the tables say now.
pub(crate) async fn settle() {
    clock::sleep(LEASE).await;
}

pub(crate) async fn store(place: &Place) -> Result<Store, Failure> {
    let (data, _engine) = place.connect().await?;
    let access = place.access_table(&data);
    place.create(&data, false).await?;
    place.create_access(&access, false).await?;
    Ok(Store::new(data.clone(), access.clone(), Basic::new(data, access, Level::NoPermissions)))
}

fn principal_of(arn: &str) -> Result<String, Failure> {
    access::principal_of(arn).ok_or_else(|| format!("{arn} is no ARN of a user or a role").into())
}

pub(crate) fn user_name(text: &str) -> Result<UserName, Failure> {
    UserName::new(text).map_err(|error| error.message.into())
}

fn level(text: &str) -> Result<Level, String> {
    let level = Level::from_name(text).filter(|level| *level != Level::NoPermissions);
    level.ok_or_else(|| "a level is READ, USE, EDIT, MANAGE or DENY".to_owned())
}

/// Asks for a password twice on a terminal, and reads it from the standard input otherwise. It is no argument: other users of the machine can
/// see those.
fn password(name: &UserName) -> Result<String, Failure> {
    if std::io::stdin().is_terminal() {
        let password = rpassword::prompt_password(format!("Password of {name}: "))?;
        if rpassword::prompt_password("The same again: ")? != password {
            return Err("these were two passwords".into());
        }
        return Ok(password);
    }
    let mut line = String::new();
    std::io::stdin().lock().read_line(&mut line)?;
    Ok(line.trim_end_matches(['\r', '\n']).to_owned())
}
