//! Each write of single sign-on, interrupted and disturbed at each of its requests. The items of the
//! access table are consistent at any time, and the call succeeds when it is repeated.

use embedded_engine::faults::InjectedFault;
use futures::future::BoxFuture;
use mlflow_api::Result;
use permissions::UserSecret;
use test_site::BACKGROUND_FAULTS;

use crate::site::{Process, Site, name, person, timed};

/// A call of the store that writes. The test repeats it until it succeeds.
type Call = fn(&Process) -> BoxFuture<'_, Result<bool>>;

/// The name of the call that deletes the user.
const DELETION: &str = "the deletion of the user";

/// The calls, and whether what they are to achieve holds.
const CALLS: [(&str, Call, Call); 8] = [
    (
        "the first sign-in",
        |process| {
            Box::pin(async {
                let new_users = identity_providers::NewUsers::Create;
                let user = process.store.sso_user(&person("new"), Some("new"), new_users).await?;
                Ok(matches!(user, auth::store::SsoUser::Created(_) | auth::store::SsoUser::Found(_)))
            })
        },
        |process| {
            Box::pin(async {
                let user = process.store.identity_user(&person("new")).await?;
                Ok(user.is_some_and(|user| user.user.name == name("new")))
            })
        },
    ),
    (
        "linking",
        |process| Box::pin(async { process.store.identity_link(&name("ann"), &person("2")).await.map(|()| true) }),
        |process| Box::pin(async { Ok(process.store.identity_user(&person("2")).await?.is_some()) }),
    ),
    (
        "unlinking",
        |process| {
            Box::pin(async {
                match process.store.identity_unlink(&name("ann"), &person("1")).await {
                    Err(error) if error.code == mlflow_api::ErrorCode::ResourceDoesNotExist => Ok(true),
                    outcome => outcome.map(|()| true),
                }
            })
        },
        |process| {
            Box::pin(async {
                let user = process.store.user_get(&name("ann")).await?;
                Ok(user.identities.is_empty() && user.rule_roles.is_empty() && !user.user.is_admin)
            })
        },
    ),
    (
        "a session",
        |process| {
            Box::pin(async {
                let user = process.store.user_get(&name("ann")).await?;
                process.open(&user, &person("1"), &UserSecret::new(name("ann"))).await
            })
        },
        |process| Box::pin(async { Ok(process.store.all_end().await?.sessions > 0) }),
    ),
    (
        "roles given and taken back",
        |process| Box::pin(process.apply_other()),
        |process| {
            Box::pin(async {
                let user = process.store.user_get(&name("ann")).await?;
                Ok(user.rule_roles.len() == 1 && user.user.roles.len() == 2 && !user.user.is_admin)
            })
        },
    ),
    (
        "a token of a machine",
        |process| {
            Box::pin(async {
                let everything = access::Restriction::default();
                let made = process.store.machine_token_create("ci", &name("ann"), everything, 60).await?;
                Ok(made.is_some())
            })
        },
        |process| Box::pin(async { Ok(process.store.all_end().await?.tokens > 0) }),
    ),
    (
        "the end of all sessions",
        |process| Box::pin(async { process.store.all_end().await.map(|_| true) }),
        |process| Box::pin(async { Ok(process.store.all_end().await? == auth::store::EndedCredentials::default()) }),
    ),
    (
        DELETION,
        |process| {
            Box::pin(async {
                match process.store.user_delete(&name("ann")).await {
                    Err(error) if error.code == mlflow_api::ErrorCode::ResourceDoesNotExist => Ok(true),
                    outcome => outcome.map(|()| true),
                }
            })
        },
        |process| Box::pin(async { Ok(process.store.identity_user(&person("1")).await?.is_none()) }),
    ),
];

impl Process {
    /// Takes back one role and the right of an administrator, and gives another role.
    async fn apply_other(&self) -> Result<bool> {
        self.apply(&name("ann"), &person("1"), &["other"], false).await
    }
}

/// Creates a user with an identity that has given a role and the right of an administrator, another
/// role that was assigned by hand, and a session.
async fn filled() -> Site {
    let site = Site::new().await;
    let process = site.process();
    process.user("root", true).await;
    let user = process.found(&person("1"), "ann").await;
    for role in ["given", "other"] {
        process.role(role).await;
    }
    let manual = process.role("manual").await;
    process.assign(&name("ann"), manual).await;
    assert!(process.apply(&name("ann"), &person("1"), &["given"], true).await.unwrap());
    process.session(&user, &person("1")).await;
    site.check().await;
    site
}

#[tokio::test]
async fn each_write_is_whole_at_any_fault_and_can_be_repeated() {
    timed(async {
        let base = filled().await;
        for (what, call, holds) in CALLS {
            let mut tried = 0;
            for (fault, times) in BACKGROUND_FAULTS.into_iter().chain([(InjectedFault::Disconnected, 1)]) {
                for at in 1.. {
                    let site = base.copy();
                    let process = site.faulty();
                    site.faults.trouble_at(fault, at, times);
                    let outcome = call(&process).await;
                    let calls: u64 = site.faults.all_calls().iter().map(|(_, calls)| calls).sum();
                    site.faults.work_again();
                    // An interrupted deletion of a user has deleted a part, and the next one continues.
                    if outcome.is_ok() || what != DELETION {
                        site.check().await;
                    }
                    let told = format!("{what}: {fault:?} {times} at {at}");
                    // A single fault is retried within the call.
                    if times == 1 {
                        assert!(outcome.as_ref().is_ok_and(|done| *done), "{told}: {:?}", outcome.err());
                    }
                    if outcome.is_err() {
                        assert!(call(&process).await.unwrap(), "{told}");
                        site.check().await;
                    }
                    assert!(holds(&site.process()).await.unwrap(), "{told}");
                    if calls < at {
                        break;
                    }
                    tried += 1;
                }
            }
            assert!(tried >= 7, "{what}: {tried}");
        }
    })
    .await;
}
