//! `admin link`, `admin unlink` and `admin identities`: the identities with which users sign in at
//! an identity provider.

use auth::store::Store;
use clap::Args;
use identity_providers::Person;
use mlflow_api::ErrorCode;

use super::{store, user_name, wait_for_lease};
use crate::Failure;
use crate::output::print_line;
use crate::table_options::TableOptions;

/// A user and an identity.
#[derive(Args)]
pub(super) struct LinkOptions {
    /// Name of the user.
    #[arg(value_name = "NAME")]
    user: String,
    /// Issuer of the identity provider, exactly as in the claim `iss`.
    #[arg(value_name = "ISSUER")]
    issuer: String,
    /// The person's id at the provider: the claim `sub`, or `oid` for Entra.
    #[arg(value_name = "SUBJECT")]
    subject: String,
    #[command(flatten)]
    place: TableOptions,
}

impl LinkOptions {
    fn person(&self) -> Person {
        Person { issuer: self.issuer.clone(), subject: self.subject.clone() }
    }
}

/// Links an identity to a user. With `creates`, creates the user without a password if it does not
/// exist.
pub(super) async fn link(options: &LinkOptions, creates: bool) -> Result<(), Failure> {
    let (name, person, store) = (user_name(&options.user)?, options.person(), store(&options.place).await?);
    if creates {
        match store.service_create(&name).await {
            Err(error) if error.code == ErrorCode::ResourceAlreadyExists => {}
            made => drop(made.map_err(failure)?),
        }
    }
    store.identity_link(&name, &person).await.map_err(failure)?;
    wait_for_lease().await;
    print_line(&format!("Linked {} of {} to `{name}`.", person.subject, person.issuer));
    Ok(())
}

/// Unlinks an identity from a user.
pub(super) async fn unlink(options: &LinkOptions) -> Result<(), Failure> {
    let (name, person) = (user_name(&options.user)?, options.person());
    store(&options.place).await?.identity_unlink(&name, &person).await.map_err(failure)?;
    print_line(&format!("Unlinked {} of {} from `{name}`. Its sessions have ended.", person.subject, person.issuer));
    Ok(())
}

/// Prints the identities of a user or of all users, one per line: user, issuer and subject.
pub(super) async fn list(store: &Store, user: Option<&str>) -> Result<(), Failure> {
    let users = match user {
        Some(user) => vec![store.user_get(&user_name(user)?).await.map_err(failure)?],
        None => store.users().await.map_err(failure)?,
    };
    let mut has_any = false;
    for user in users {
        for person in user.people() {
            has_any = true;
            print_line(&format!("{}\t{}\t{}", user.user.name, person.issuer, person.subject));
        }
    }
    if !has_any {
        print_line("There are no identities.");
    }
    Ok(())
}

fn failure(error: mlflow_api::Error) -> Failure {
    error.cause.unwrap_or(error.message).into()
}
