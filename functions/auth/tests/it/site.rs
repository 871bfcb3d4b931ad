//! A private pair of tables for tests of the store, with processes over them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use access::{Authorizer, Caller, RequestHead};
use auth::store::{NewRenewal, NewSsoSession, SsoUser, Store, StoredUser, renew_by_after};
use embedded_engine::Engine;
use embedded_engine::faults::FaultInjector;
use http::header::{AUTHORIZATION, COOKIE, HOST};
use identity_providers::{Memberships, NamedRole, NewUsers, Person};
use key_schema::access_rows::{Counter, Identity, ListedUser, RoleMember, User};
use key_schema::attributes::{ASSIGNMENT, COUNT, DISABLED, IDENTITIES, IS_ADMIN, ROLES, RULE_ROLES, USER, USER_ID};
use key_schema::rows::RowDescription;
use key_schema::{Key, Ordinal};
use mlflow_api::auth::PermissionLevel;
use mlflow_api::{Error, UserName};
use permissions::{PasswordPolicy, UserAuthorizer, UserSecret, cookies};
use runtime::clock::SimulatedClock;
use serde_json::{Value, json};
use table::{RetryPolicy, Table};
use test_site::{TestAuthorizer, TestClient, TestResponse, key_of};

const DATA: &str = "mlflow";
const ACCESS: &str = "mlflow-access";
pub(crate) const ISSUER: &str = "https://id.example";
pub(crate) const PASSWORD: &str = "correct horse battery";
/// The number of seconds ahead of the time at which a session has to be renewed that tests claim
/// renewals.
pub(crate) const AHEAD: i64 = 60;

/// Runs a test with a simulated clock, so that leases and claims take no real time.
pub(crate) async fn timed(test: impl Future<Output = ()>) {
    let clock = SimulatedClock::begin();
    tokio::select! {
        () = Box::pin(test) => {}
        () = clock.drive() => {}
    }
}

/// Lets simulated time pass.
pub(crate) async fn pass(seconds: u64) {
    runtime::clock::sleep(Duration::from_secs(seconds)).await;
}

/// A pair of tables, with an engine that injects faults into requests of [`Site::faulty`].
pub(crate) struct Site {
    pub(crate) engine: Engine,
    pub(crate) faults: FaultInjector,
    data: Table,
}

/// A process: a store with the authorizer of its requests.
#[derive(Clone)]
pub(crate) struct Process {
    pub(crate) store: Store,
    pub(crate) authorizer: UserAuthorizer,
}

impl Site {
    pub(crate) async fn new() -> Self {
        let engine = Engine::memory().unwrap();
        let data = Table::new(engine.client(), DATA);
        data.create_if_missing().await.unwrap();
        engine.end_stream(DATA).await.unwrap();
        data.beside(ACCESS).create_access_if_missing().await.unwrap();
        let faults = FaultInjector::new(engine.http_client());
        Self { engine, faults, data }
    }

    /// Returns a copy of the tables in their current state.
    pub(crate) fn copy(&self) -> Self {
        let engine = self.engine.snapshot().unwrap();
        let faults = FaultInjector::new(engine.http_client());
        Self { data: Table::new(engine.client(), DATA), engine, faults }
    }

    pub(crate) fn access(&self) -> Table {
        self.data.beside(ACCESS)
    }

    /// Starts a process whose requests to the tables always succeed.
    pub(crate) fn process(&self) -> Process {
        process(&self.data, PasswordPolicy::Everyone)
    }

    /// Starts a process with a policy of passwords.
    pub(crate) fn process_with(&self, policy: PasswordPolicy) -> Process {
        process(&self.data, policy)
    }

    /// Starts a process whose requests are subject to the injected faults, and that gives up after
    /// few attempts.
    pub(crate) fn faulty(&self) -> Process {
        let retry = RetryPolicy {
            attempts: 3,
            first_pause: Duration::from_millis(1),
            longest_pause: Duration::from_millis(1),
            ..RetryPolicy::default().in_background()
        };
        process(&Table::new(self.faults.client(), DATA).with_retry(retry), PasswordPolicy::Everyone)
    }

    /// Checks what always holds between the items of the access table.
    pub(crate) async fn check(&self) {
        let items = self.engine.items(ACCESS).await.unwrap();
        let items: BTreeMap<Key, Value> = items.into_iter().map(|item| (key_of(&item), item)).collect();
        for (key, item) in &items {
            let attributes: Vec<_> = item.as_object().unwrap().iter().collect();
            let code = |value: &Value| value.as_object().unwrap().keys().next().unwrap().clone();
            let codes: Vec<_> = attributes.iter().map(|(name, value)| (name.as_str(), code(value))).collect();
            let undeclared = RowDescription::undeclared(key, codes.iter().map(|(name, code)| (*name, code.as_str())));
            assert_eq!(undeclared, Vec::<String>::new());
        }
        let entries = |item: &Value, map: &str| item[map]["M"].as_object().cloned().unwrap_or_default();
        let mut administrators = 0;
        let mut members = BTreeSet::new();
        let mut identities = BTreeSet::new();
        for (key, item) in &items {
            let Some(User { user }) = User::parse(key) else { continue };
            let id = &item[USER_ID.name()];
            let is_enabled = item[DISABLED.name()]["N"] != "1";
            administrators += u64::from(item[IS_ADMIN.name()]["N"] == "1" && is_enabled);
            for digest in entries(item, IDENTITIES.name()).keys() {
                let row = &items[&Identity::key(&digest.as_str().into())];
                assert_eq!((&row[USER.name()]["S"], &row[USER_ID.name()]), (&json!(user.as_str()), id), "{user}");
                identities.insert(digest.clone());
            }
            let roles = entries(item, ROLES.name());
            for (role, assignment) in &roles {
                let member = RoleMember::key(&Ordinal(role.parse().unwrap()), &user);
                let row = items.get(&member).unwrap_or_else(|| panic!("{user} is no member of {role}"));
                assert_eq!((&row[ASSIGNMENT.name()], &row[USER_ID.name()]), (assignment, id), "{user} {role}");
                members.insert(member);
            }
            for role in entries(item, RULE_ROLES.name()).keys() {
                assert!(roles.contains_key(role), "{user} has a mark of role {role}");
            }
            let listed = ListedUser::key(&Ordinal(id["N"].as_str().unwrap().parse().unwrap()));
            assert_eq!(items[&listed][USER.name()]["S"], user.as_str());
        }
        let all_members = items.keys().filter(|key| RoleMember::parse(key).is_some());
        assert_eq!(all_members.cloned().collect::<BTreeSet<_>>(), members);
        let rows = items.keys().filter_map(Identity::parse).map(|row| row.digest.0).collect::<BTreeSet<_>>();
        assert_eq!(rows, identities, "rows of identities without a user");
        let counted = items.get(&Counter::key(&"administrators".into()));
        let counted = counted.map_or(0, |item| item[COUNT.name()]["N"].as_str().unwrap().parse().unwrap());
        assert_eq!(administrators, counted, "administrators");
    }
}

fn process(data: &Table, policy: PasswordPolicy) -> Process {
    let access = data.beside(ACCESS);
    let authorizer = UserAuthorizer::new(data.clone(), access.clone(), PermissionLevel::NoPermissions);
    let authorizer = authorizer.with_password_policy(policy);
    Process { store: Store::new(data.clone(), access, authorizer.clone()), authorizer }
}

impl Process {
    /// Creates a user with a password.
    pub(crate) async fn user(&self, user: &str, is_admin: bool) -> UserName {
        let name = name(user);
        self.store.user_create(&name, PASSWORD.to_owned(), is_admin).await.unwrap();
        name
    }

    /// Creates a role of the default workspace, and returns its id.
    pub(crate) async fn role(&self, role: &str) -> u32 {
        self.store.role_create(role, "default", None).await.unwrap().answer().id
    }

    /// Sends a request to the API of the function, as a caller who may do everything.
    pub(crate) async fn call(&self, method: &str, path: &str, body: Value) -> TestResponse {
        let api = TestClient(auth::router(&self.store, Arc::new(everybody())));
        api.call_at(method, &format!("/api/{path}"), body.to_string()).await
    }

    /// Assigns a role to a user, as an administrator does.
    pub(crate) async fn assign(&self, user: &UserName, role: u32) {
        self.call("POST", "3.0/mlflow/roles/assign", json!({ "username": user.as_str(), "role_id": role })).await.ok();
    }

    /// Removes a role from a user, as an administrator does.
    pub(crate) async fn unassign(&self, user: &UserName, role: u32) {
        self.call("DELETE", "3.0/mlflow/roles/unassign", json!({ "username": user.as_str(), "role_id": role }))
            .await
            .ok();
    }

    /// Signs a person in, and creates the user if there is none.
    pub(crate) async fn found(&self, person: &Person, user: &str) -> StoredUser {
        match self.store.sso_user(person, Some(user), NewUsers::Create).await.unwrap() {
            SsoUser::Found(user) | SsoUser::Created(user) => user,
            other => panic!("{}", outcome(&other)),
        }
    }

    /// Opens a session that has to be renewed after 15 minutes.
    pub(crate) async fn session(&self, user: &StoredUser, person: &Person) -> UserSecret {
        let secret = UserSecret::new(user.user.name.clone());
        assert!(self.open(user, person, &secret).await.unwrap());
        secret
    }

    pub(crate) async fn open(&self, user: &StoredUser, person: &Person, secret: &UserSecret) -> Result<bool, Error> {
        let renewal = Some(NewRenewal { provider: "example".to_owned(), sealed: b"token 0".to_vec() });
        let new = NewSsoSession { secret, renew_by: renew_by_after(15), renewal };
        self.store.sso_session_open(user, person, new).await
    }

    /// Returns the status of a request with this session, and the header that tells the page to
    /// renew it.
    pub(crate) async fn admits_session(&self, secret: &UserSecret) -> (u16, Option<String>) {
        let set = cookies::session_cookies(&head(&[]), secret, 60);
        let cookies = set.map(|cookie| cookie.split(';').next().unwrap().to_owned()).join("; ");
        self.admits(&head(&[(COOKIE.as_str(), &cookies), ("sec-fetch-site", "same-origin")])).await
    }

    /// Returns the status of a request with this token.
    pub(crate) async fn admits_token(&self, secret: &UserSecret) -> u16 {
        self.admits(&head(&[(AUTHORIZATION.as_str(), &format!("Bearer {}", secret.token()))])).await.0
    }

    /// Authenticates a request as the HTTP layer does.
    pub(crate) async fn admits(&self, arrived: &RequestHead) -> (u16, Option<String>) {
        let confirmed = match self.authorizer.authenticate(arrived).await {
            Ok(identity) => self.authorizer.confirm(identity).await,
            Err(error) => Err(error),
        };
        match confirmed {
            Ok(identity) => {
                assert!(matches!(identity.caller, Caller::User(_)));
                (200, None)
            }
            Err(error) => {
                let header = error.headers.iter().find(|(name, _)| *name == permissions::SESSION_HEADER);
                (error.code.http_status(), header.map(|(_, value)| value.clone()))
            }
        }
    }

    /// Applies memberships with a confirmation for 30 days.
    pub(crate) async fn apply(
        &self,
        user: &UserName,
        person: &Person,
        roles: &[&str],
        is_administrator: bool,
    ) -> Result<bool, Error> {
        let roles = roles.iter().map(|role| NamedRole { workspace: "default".to_owned(), name: (*role).to_owned() });
        let memberships = Memberships { roles: roles.collect(), is_administrator };
        self.store.memberships_apply(user, person, &memberships, in_days(30)).await
    }

    /// Returns the ids of a user's roles.
    pub(crate) async fn roles_of(&self, user: &UserName) -> Vec<u32> {
        self.store.user_get(user).await.unwrap().user.roles.clone()
    }
}

/// Returns an authorizer that permits everything.
fn everybody() -> TestAuthorizer {
    TestAuthorizer::of_asks(access::Visibility::Everything, |_| true)
}

/// Describes a result that a test does not expect.
pub(crate) fn outcome(user: &SsoUser) -> String {
    match user {
        SsoUser::Found(user) => format!("found {}", user.user.name),
        SsoUser::Created(user) => format!("created {}", user.user.name),
        SsoUser::Disabled(name) => format!("{name} is disabled"),
        SsoUser::NameTaken(name) => format!("{name} is taken"),
        SsoUser::InvalidName(reason) => format!("invalid: {reason}"),
        SsoUser::Unknown => "unknown".to_owned(),
    }
}

/// Returns a time this number of days from now, in seconds since 1970.
pub(crate) fn in_days(days: i64) -> i64 {
    runtime::clock::now_ms() / 1_000 + days * 86_400
}

pub(crate) fn name(user: &str) -> UserName {
    UserName::new(user).unwrap()
}

pub(crate) fn person(subject: &str) -> Person {
    Person { issuer: ISSUER.to_owned(), subject: subject.to_owned() }
}

pub(crate) fn head(headers: &[(&str, &str)]) -> RequestHead {
    let request = http::Request::builder().method("POST").uri("/ajax-api/2.0/mlflow/runs/search");
    let request = request.header(HOST, "localhost:5000");
    let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
    RequestHead::of(&request.body(()).unwrap().into_parts().0)
}
