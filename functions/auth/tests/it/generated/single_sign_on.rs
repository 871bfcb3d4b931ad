//! The costs of single sign-on: sign-ins, renewals, and the calls of operators and clients.

use access::Restriction;
use auth::store::{
    ClaimedRenewal, LoginTaken, NewLogin, NewRenewal, NewSsoSession, RenewalClaim, SsoUser, Store, StoredUser,
    renew_by_after,
};
use identity_providers::{Memberships, NamedRole, NewUsers, Person};
use mlflow_api::UserName;
use permissions::UserSecret;
use runtime::clock::SimulatedClock;
use test_site::ledger::{CostLedger, MeteredProcesses, budget};

use super::{Mode, Process, bench, tables};

pub(super) fn person(subject: &str) -> Person {
    Person { issuer: "https://id.example".to_owned(), subject: subject.to_owned() }
}

/// Runs a call, without waiting for leases in real time.
async fn driven<T>(clock: &SimulatedClock, call: impl Future<Output = T>) -> T {
    tokio::select! {
        () = clock.drive() => unreachable!("the clock is driven forever"),
        result = Box::pin(call) => result,
    }
}

/// Signs a person in whose subject is the name of the user.
async fn signed_in(store: &Store, subject: &str) -> StoredUser {
    match store.sso_user(&person(subject), Some(subject), NewUsers::Create).await.unwrap() {
        SsoUser::Created(user) | SsoUser::Found(user) => user,
        _ => panic!("{subject} is not signed in"),
    }
}

async fn sso_session(store: &Store, user: &StoredUser, minutes: u32) -> UserSecret {
    let secret = UserSecret::new(user.user.name.clone());
    let renewal = Some(NewRenewal { provider: "example".to_owned(), sealed: vec![0; 500] });
    let new = NewSsoSession { secret: &secret, renew_by: renew_by_after(minutes), renewal };
    assert!(store.sso_session_open(user, &person(user.user.name.as_str()), new).await.unwrap());
    secret
}

async fn claim(store: &Store, secret: &UserSecret) -> ClaimedRenewal {
    match store.renewal_claim(secret, 60).await.unwrap() {
        RenewalClaim::Claimed(claimed) => claimed,
        other => panic!("{other:?}"),
    }
}

fn memberships(roles: &[&str]) -> Memberships {
    let named = |role: &&str| NamedRole { workspace: "default".to_owned(), name: (*role).to_owned() };
    Memberships { roles: roles.iter().map(named).collect(), is_administrator: false }
}

/// Measures the calls of sign-ins and renewals.
pub(super) async fn measure(ledger: &mut CostLedger) {
    ledger.section("Single sign-on");
    let (data, _) = tables().await;
    let bench = bench(data, Mode::Users);
    let store = &bench.store.store;
    let clock = SimulatedClock::begin();
    let everywhere = |cost: [f64; 3]| budget(cost, cost);
    let names = ["ann", "bob"];
    let call = "a person who signs in for the first time: creates the user";
    ledger
        .row(call, everywhere([4.0, 7.0, 2.0]), &bench, names, async |process, name| {
            signed_in(&process.store, name).await;
        })
        .await;
    ledger
        .row(
            "a person who signs in again: finds the user",
            everywhere([2.0, 0.0, 2.0]),
            &bench,
            names,
            async |process, name| {
                signed_in(&process.store, name).await;
            },
        )
        .await;
    let users = [signed_in(store, "ann").await, signed_in(store, "bob").await];
    let call = "opens the session";
    ledger
        .row(call, everywhere([2.0, 6.0, 1.0]), &bench, [&users[0], &users[1]], async |process, user| {
            driven(&clock, sso_session(&process.store, user, 60)).await;
        })
        .await;
    for role in ["one", "two", "three"] {
        store.role_create(role, "default", None).await.unwrap();
    }
    let names = names.map(|name| UserName::new(name).unwrap());
    let end = renew_by_after(43_200);
    for (call, roles, cost) in [
        ("gives three roles by rules", &["one", "two", "three"][..], [4.0, 15.0, 4.0]),
        ("finds that the roles are those of the rules", &["one", "two", "three"], [2.0, 0.0, 4.0]),
        ("takes two of them back", &["one"], [3.0, 6.0, 2.0]),
    ] {
        ledger
            .row(call, everywhere(cost), &bench, names.each_ref(), async |process, name| {
                let (person, wanted) = (person(name.as_str()), memberships(roles));
                let applied = process.store.memberships_apply(name, &person, &wanted, end);
                assert!(driven(&clock, applied).await.unwrap());
            })
            .await;
    }
    let sessions = [
        driven(&clock, sso_session(store, &users[0], 1)).await,
        driven(&clock, sso_session(store, &users[1], 1)).await,
    ];
    ledger
        .row(
            "claims the renewal of a session",
            everywhere([2.0, 1.0, 3.0]),
            &bench,
            sessions.each_ref(),
            async |process, secret| {
                claim(&process.store, secret).await;
            },
        )
        .await;
    let due = [
        driven(&clock, sso_session(store, &users[0], 1)).await,
        driven(&clock, sso_session(store, &users[1], 1)).await,
    ];
    let claimed = [claim(store, &due[0]).await, claim(store, &due[1]).await];
    ledger
        .row(
            "completes the renewal",
            everywhere([1.0, 4.0, 0.0]),
            &bench,
            claimed.each_ref(),
            async |process, claimed| {
                let next = Some(vec![1; 500]);
                assert!(process.store.renewal_complete(claimed, renew_by_after(15), next).await.unwrap());
            },
        )
        .await;
    Box::pin(of_operators_and_clients(ledger, &bench, &clock, &names)).await;
}

/// Measures the calls of operators and of clients of single sign-on.
async fn of_operators_and_clients(
    ledger: &mut CostLedger,
    bench: &MeteredProcesses<Process>,
    clock: &SimulatedClock,
    names: &[UserName; 2],
) {
    let everywhere = |cost: [f64; 3]| budget(cost, cost);
    let of_user = |name: &UserName| person(&format!("second of {name}"));
    ledger
        .row("links an identity", everywhere([4.0, 4.0, 3.0]), bench, names.each_ref(), async |process, name| {
            process.store.identity_link(name, &of_user(name)).await.unwrap();
        })
        .await;
    ledger
        .row(
            "unlinks an identity without sessions",
            everywhere([3.0, 4.0, 2.0]),
            bench,
            names.each_ref(),
            async |process, name| {
                driven(clock, process.store.identity_unlink(name, &of_user(name))).await.unwrap();
            },
        )
        .await;
    ledger
        .row(
            "a machine exchanges a JWT for a token",
            everywhere([4.0, 2.0, 2.0]),
            bench,
            names.each_ref(),
            async |process, name| {
                let made = process.store.machine_token_create("ci", name, Restriction::default(), 60).await.unwrap();
                assert!(made.is_some());
            },
        )
        .await;
    for name in names {
        let new = NewLogin { code: name.to_string(), device: "device".to_owned(), name: "laptop".to_owned() };
        assert!(bench.store.store.login_create(&new, None).await.unwrap());
    }
    ledger
        .row("a login that is pending", everywhere([2.0, 1.0, 1.0]), bench, names.each_ref(), async |process, name| {
            let taken = process.store.login_take(name.as_str(), "device", Some(30)).await.unwrap();
            assert!(matches!(taken, LoginTaken::Pending));
        })
        .await;
    for name in names {
        assert!(bench.store.store.login_approve(name.as_str(), name).await.unwrap());
    }
    ledger
        .row(
            "a login that takes its token",
            everywhere([5.0, 7.0, 3.0]),
            bench,
            names.each_ref(),
            async |process, name| {
                let taken = process.store.login_take(name.as_str(), "device", Some(30)).await.unwrap();
                assert!(matches!(taken, LoginTaken::Token(..)));
            },
        )
        .await;
}
