//! Roles and rights of administrators that rules give.

use identity_providers::{Configuration, Memberships, NamedRole};
use mlflow_api::ErrorCode;
use serde_json::json;

use crate::site::{Process, Site, in_days, name, pass, person, timed};

#[tokio::test]
async fn only_memberships_that_the_same_identity_was_given_are_taken_back() {
    timed(async {
        let site = Site::new().await;
        let (process, elsewhere) = (site.process(), site.process());
        let ann = process.found(&person("1"), "ann").await.user.name.clone();
        process.store.identity_link(&ann, &person("2")).await.unwrap();
        let (manual, first, second) =
            (process.role("manual").await, process.role("first").await, process.role("second").await);
        process.assign(&ann, manual).await;
        assert!(process.apply(&ann, &person("1"), &["manual", "first"], false).await.unwrap());
        assert!(process.apply(&ann, &person("2"), &["first", "second"], false).await.unwrap());
        assert_eq!(elsewhere.roles_of(&ann).await, [manual, first, second]);
        site.check().await;
        // The second identity has given `second` only, because the user had `first` already.
        process.apply(&ann, &person("2"), &[], false).await.unwrap();
        assert_eq!(elsewhere.roles_of(&ann).await, [manual, first]);
        process.apply(&ann, &person("1"), &[], false).await.unwrap();
        assert_eq!(elsewhere.roles_of(&ann).await, [manual]);
        site.check().await;
        // A role that an administrator has taken away is given again by the rule, and one that was
        // assigned by hand in the meantime is not taken back.
        process.apply(&ann, &person("1"), &["first", "second"], false).await.unwrap();
        process.unassign(&ann, first).await;
        process.assign(&ann, first).await;
        process.apply(&ann, &person("1"), &[], false).await.unwrap();
        assert_eq!(elsewhere.roles_of(&ann).await, [manual, first]);
        site.check().await;
    })
    .await;
}

#[tokio::test]
async fn a_role_that_is_deleted_is_given_again_only_if_it_is_created_again() {
    timed(async {
        let site = Site::new().await;
        let process = site.process();
        let ann = process.found(&person("1"), "ann").await.user.name.clone();
        let role = process.role("given").await;
        process.apply(&ann, &person("1"), &["given"], false).await.unwrap();
        process.call("DELETE", "3.0/mlflow/roles/delete", json!({ "role_id": role })).await.ok();
        assert_eq!(process.roles_of(&ann).await, Vec::<u32>::new());
        site.check().await;
        assert!(process.apply(&ann, &person("1"), &["given"], false).await.is_err());
        let again = process.role("given").await;
        process.apply(&ann, &person("1"), &["given"], false).await.unwrap();
        assert_eq!(process.roles_of(&ann).await, [again]);
        site.check().await;
    })
    .await;
}

#[tokio::test]
async fn unlinking_takes_back_what_rules_gave_to_the_identity() {
    timed(async {
        let site = Site::new().await;
        let process = site.process();
        process.user("root", true).await;
        let ann = process.found(&person("1"), "ann").await.user.name.clone();
        let manual = process.role("manual").await;
        process.role("given").await;
        process.assign(&ann, manual).await;
        process.apply(&ann, &person("1"), &["given"], true).await.unwrap();
        assert!(process.store.user_get(&ann).await.unwrap().user.is_admin);
        process.store.identity_unlink(&ann, &person("1")).await.unwrap();
        let user = process.store.user_get(&ann).await.unwrap();
        assert_eq!((user.user.is_admin, user.user.roles.clone()), (false, vec![manual]));
        assert!(!process.apply(&ann, &person("1"), &["given"], true).await.unwrap());
        site.check().await;
    })
    .await;
}

#[tokio::test]
async fn roles_that_do_not_exist_are_named_and_nothing_changes() {
    timed(async {
        let site = Site::new().await;
        let process = site.process();
        let ann = process.found(&person("1"), "ann").await.user.name.clone();
        process.role("there").await;
        let roles = [("default", "there"), ("default", "nowhere"), ("team-x", "there"), ("Not a workspace", "r")];
        let roles = roles.map(|(workspace, name)| NamedRole { workspace: workspace.to_owned(), name: name.to_owned() });
        let memberships = Memberships { roles: roles.into_iter().collect(), is_administrator: false };
        let error = process.store.memberships_apply(&ann, &person("1"), &memberships, in_days(30)).await.unwrap_err();
        assert_eq!(error.code, ErrorCode::InvalidParameterValue);
        let named = "`r` in the workspace `Not a workspace`, `nowhere`, `there` in the workspace `team-x`.";
        assert!(error.message.contains(named), "{}", error.message);
        assert_eq!(process.roles_of(&ann).await, Vec::<u32>::new());
        let rule = |role: &str, workspace: &str| {
            json!({ "claim": "groups", "values": ["g"], "role": role, "workspace": workspace })
        };
        let configuration = json!({
            "origins": ["https://ml.example"],
            "providers": [{
                "name": "example", "title": "Example", "issuer": "https://id.example", "client_id": "c",
                "roles": [rule("there", "default"), rule("nowhere", "default"), rule("there", "team-x")],
            }],
        });
        let configuration = Configuration::from_json(&configuration.to_string()).unwrap();
        let missing = process.store.roles_missing(&configuration).await.unwrap();
        let missing: Vec<_> = missing.iter().map(|role| (role.workspace.as_str(), role.name.as_str())).collect();
        assert_eq!(missing, [("default", "nowhere"), ("team-x", "there")]);
        assert_eq!(process.store.sign_on_configuration_get().await.unwrap(), None);
        process.store.sign_on_configuration_put(&configuration).await.unwrap();
        assert_eq!(process.store.sign_on_configuration_get().await.unwrap(), Some(configuration.clone()));
        let long = Configuration { origins: vec!["https://ml.example".to_owned(); 20_000], ..configuration };
        assert!(process.store.sign_on_configuration_put(&long).await.is_err());
        process.store.sign_on_configuration_remove().await.unwrap();
        assert_eq!(process.store.sign_on_configuration_get().await.unwrap(), None);
        site.check().await;
    })
    .await;
}

async fn is_admin(process: &Process, user: &str) -> bool {
    process.store.user_get(&name(user)).await.unwrap().user.is_admin
}

#[tokio::test]
async fn the_last_administrator_keeps_the_right_and_loses_the_roles() {
    timed(async {
        let site = Site::new().await;
        let process = site.process();
        let ann = process.found(&person("1"), "ann").await.user.name.clone();
        process.role("given").await;
        process.apply(&ann, &person("1"), &["given"], true).await.unwrap();
        process.apply(&ann, &person("1"), &[], false).await.unwrap();
        assert_eq!((is_admin(&process, "ann").await, process.roles_of(&ann).await), (true, Vec::new()));
        let error = process.store.identity_unlink(&ann, &person("1")).await.unwrap_err();
        assert_eq!(error.code, ErrorCode::BadRequest);
        site.check().await;
        // With another administrator, the right is taken back.
        process.user("root", true).await;
        process.apply(&ann, &person("1"), &[], false).await.unwrap();
        assert!(!is_admin(&process, "ann").await);
        // An administrator by hand remains one, also if a rule gave the right before.
        process.apply(&ann, &person("1"), &[], true).await.unwrap();
        process.store.user_set_admin(&ann, true).await.unwrap();
        process.apply(&ann, &person("1"), &[], false).await.unwrap();
        assert!(is_admin(&process, "ann").await);
        site.check().await;
    })
    .await;
}

#[tokio::test]
async fn many_roles_change_in_several_transactions_and_no_more_than_the_maximum() {
    timed(async {
        let site = Site::new().await;
        let process = site.process();
        let ann = process.found(&person("1"), "ann").await.user.name.clone();
        let names: Vec<_> = (0..101).map(|number| format!("role {number:03}")).collect();
        let mut ids = Vec::new();
        for role in &names {
            ids.push(process.role(role).await);
        }
        let names: Vec<_> = names.iter().map(String::as_str).collect();
        let apply = async |range: std::ops::Range<usize>| process.apply(&ann, &person("1"), &names[range], false).await;
        apply(0..50).await.unwrap();
        assert_eq!(process.roles_of(&ann).await, ids[..50]);
        site.check().await;
        apply(50..100).await.unwrap();
        assert_eq!(process.roles_of(&ann).await, ids[50..100]);
        site.check().await;
        let error = apply(50..101).await.unwrap_err();
        assert!(error.message.contains("at most 50 roles, and you would have 51"), "{}", error.message);
        assert_eq!(process.roles_of(&ann).await, ids[50..100]);
    })
    .await;
}

#[tokio::test]
async fn two_renewals_and_a_change_by_hand_at_once_lose_nothing() {
    timed(async {
        let site = Site::new().await;
        let processes = [site.process(), site.process(), site.process()];
        let [one, two, by_hand] = &processes;
        let ann = one.found(&person("1"), "ann").await.user.name.clone();
        one.store.identity_link(&ann, &person("2")).await.unwrap();
        let (first, second, manual) = (one.role("first").await, one.role("second").await, one.role("manual").await);
        let (applied, also, ()) = futures::future::join3(
            Box::pin(one.apply(&ann, &person("1"), &["first"], false)),
            Box::pin(two.apply(&ann, &person("2"), &["second"], false)),
            Box::pin(by_hand.assign(&ann, manual)),
        )
        .await;
        assert!(applied.unwrap() && also.unwrap());
        assert_eq!(one.roles_of(&ann).await, [first, second, manual]);
        site.check().await;
    })
    .await;
}

#[tokio::test]
async fn tokens_of_a_person_are_valid_while_a_provider_has_confirmed_the_person() {
    timed(async {
        let site = Site::new().await;
        let process = site.process();
        let ann = process.found(&person("1"), "ann").await.user.name.clone();
        let new = auth::new_token("t", "everything", "", "").unwrap();
        let token = process.store.token_create(&ann, new).await.unwrap().0;
        let restriction = access::Restriction::default();
        let of_machine =
            async || process.store.machine_token_create("ci", &ann, restriction, 60).await.unwrap().unwrap().0;
        let confirm = async |days| {
            let none = Memberships::default();
            process.store.memberships_apply(&ann, &person("1"), &none, in_days(days)).await.unwrap();
        };
        let version = async || process.store.user_get(&ann).await.unwrap().user.version;
        confirm(30).await;
        assert_eq!(process.admits_token(&token).await, 200);
        // A confirmation that moves the time by less than a day is not written.
        let before = version().await;
        pass(23 * 3_600).await;
        confirm(30).await;
        assert_eq!(version().await, before);
        pass(3_600).await;
        confirm(30).await;
        assert_eq!(version().await, before + 1);
        pass(30 * 86_400).await;
        assert_eq!(process.admits_token(&token).await, 401);
        assert_eq!(process.admits_token(&of_machine().await).await, 200);
        // With a day of validity, the confirmation is written before it ends.
        confirm(1).await;
        for _ in 0..10 {
            pass(6 * 3_600).await;
            confirm(1).await;
            assert_eq!(process.admits_token(&token).await, 200);
        }
        assert!(process.store.confirmation_withdraw(&ann, &person("1")).await.unwrap());
        assert_eq!(process.admits_token(&token).await, 401);
        confirm(1).await;
        assert_eq!(process.admits_token(&token).await, 200);
        assert!(!process.store.confirmation_withdraw(&ann, &person("2")).await.unwrap());
        site.check().await;
    })
    .await;
}
