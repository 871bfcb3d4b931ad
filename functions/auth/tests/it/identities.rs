//! Identities: who signs in as which user, and what unlinking ends.

use auth::store::{MAX_IDENTITIES, SsoUser};
use identity_providers::NewUsers;
use mlflow_api::ErrorCode;
use permissions::UserSecret;

use crate::site::{ISSUER, Site, name, outcome, person, timed};

#[tokio::test]
async fn the_first_sign_in_creates_the_user_and_later_ones_find_it_under_any_name() {
    timed(async {
        let site = Site::new().await;
        let process = site.process();
        let (ann, user) = (person("1"), name("ann@example.com"));
        let sign_in = async |name, new_users| process.store.sso_user(&ann, name, new_users).await.unwrap();
        assert!(matches!(sign_in(Some("ann@example.com"), NewUsers::Refuse).await, SsoUser::Unknown));
        for invalid in [None, Some(""), Some("a:b"), Some("ann\u{200b}")] {
            assert!(matches!(sign_in(invalid, NewUsers::Create).await, SsoUser::InvalidName(_)), "{invalid:?}");
        }
        let SsoUser::Created(created) = sign_in(Some("ann@example.com"), NewUsers::Create).await else { panic!() };
        assert_eq!((&created.user.name, created.user.is_admin, created.password.is_none()), (&user, false, true));
        assert_eq!(created.people(), std::slice::from_ref(&ann));
        // The email address and the setting have changed.
        for (name, new_users) in [(Some("ann@new.example"), NewUsers::Create), (None, NewUsers::Refuse)] {
            let SsoUser::Found(found) = sign_in(name, new_users).await else { panic!("{name:?}") };
            assert_eq!((found.user.id, &found.user.name), (created.user.id, &user));
        }
        // Another person with the same address is another user.
        let other = process.store.sso_user(&person("2"), Some("ann@example.com"), NewUsers::Create).await.unwrap();
        assert!(matches!(&other, SsoUser::NameTaken(taken) if *taken == user), "{}", outcome(&other));
        process.store.user_set_disabled(&user, true).await.unwrap();
        assert!(matches!(sign_in(None, NewUsers::Create).await, SsoUser::Disabled(disabled) if disabled == user));
        site.check().await;
    })
    .await;
}

#[tokio::test]
async fn a_person_who_signs_in_twice_at_once_is_one_user() {
    timed(async {
        let site = Site::new().await;
        let ann = person("1");
        let both = [site.process(), site.process(), site.process()];
        let all = futures::future::join_all(both.iter().map(|process| process.found(&ann, "ann"))).await;
        assert!(all.iter().all(|user| user.user.id == all[0].user.id));
        site.check().await;
        assert_eq!(both[0].store.users().await.unwrap().len(), 1);
    })
    .await;
}

#[tokio::test]
async fn an_identity_belongs_to_one_user() {
    timed(async {
        let site = Site::new().await;
        let process = site.process();
        let (ann, bob) = (process.user("ann", false).await, process.user("bob", false).await);
        process.store.identity_link(&ann, &person("1")).await.unwrap();
        process.store.identity_link(&ann, &person("1")).await.unwrap();
        let taken = process.store.identity_link(&bob, &person("1")).await.unwrap_err();
        assert_eq!(taken.code, ErrorCode::ResourceAlreadyExists);
        assert!(taken.message.contains(&format!("admin unlink ann {ISSUER} 1")), "{}", taken.message);
        assert_eq!(process.store.identities_of(&ann).await.unwrap(), [person("1")]);
        assert_eq!(process.store.identities_of(&bob).await.unwrap(), []);
        assert_eq!(process.store.identity_user(&person("1")).await.unwrap().unwrap().user.name, ann);
        assert!(process.store.identity_user(&person("2")).await.unwrap().is_none());
        let missing = process.store.identity_link(&name("carl"), &person("2")).await.unwrap_err();
        assert_eq!(missing.code, ErrorCode::ResourceDoesNotExist);
        for number in 2..=MAX_IDENTITIES {
            process.store.identity_link(&ann, &person(&number.to_string())).await.unwrap();
        }
        let too_many = process.store.identity_link(&ann, &person("another")).await.unwrap_err();
        assert_eq!(too_many.code, ErrorCode::InvalidParameterValue);
        process.store.identity_unlink(&ann, &person("1")).await.unwrap();
        process.store.identity_link(&bob, &person("1")).await.unwrap();
        site.check().await;
    })
    .await;
}

#[tokio::test]
async fn unlinking_ends_the_sessions_of_that_identity_in_every_process() {
    timed(async {
        let site = Site::new().await;
        let (process, elsewhere) = (site.process(), site.process());
        let ann = process.user("ann", false).await;
        process.store.identity_link(&ann, &person("1")).await.unwrap();
        process.store.identity_link(&ann, &person("2")).await.unwrap();
        let user = process.found(&person("1"), "").await;
        let (one, two) = (process.session(&user, &person("1")).await, process.session(&user, &person("2")).await);
        for secret in [&one, &two] {
            assert_eq!(elsewhere.admits_session(secret).await.0, 200);
        }
        process.store.identity_unlink(&ann, &person("1")).await.unwrap();
        for process in [&process, &elsewhere] {
            assert_eq!((process.admits_session(&one).await.0, process.admits_session(&two).await.0), (401, 200));
        }
        // A request that was planned before the identity was unlinked opens no session.
        assert!(!process.open(&user, &person("1"), &UserSecret::new(ann.clone())).await.unwrap());
        // Linking it again does not revive the session.
        process.store.identity_link(&ann, &person("1")).await.unwrap();
        crate::site::pass(1).await;
        assert_eq!(elsewhere.admits_session(&one).await.0, 401);
        let unknown = process.store.identity_unlink(&ann, &person("3")).await.unwrap_err();
        assert_eq!(unknown.code, ErrorCode::ResourceDoesNotExist);
        site.check().await;
    })
    .await;
}

#[tokio::test]
async fn tokens_of_a_person_end_with_the_last_identity_unless_there_is_a_password() {
    timed(async {
        let site = Site::new().await;
        let process = site.process();
        let with_password = process.user("ann", false).await;
        process.store.identity_link(&with_password, &person("1")).await.unwrap();
        let without = process.found(&person("2"), "bob").await.user.name.clone();
        for (user, person, status) in [(&with_password, person("1"), 200), (&without, person("2"), 401)] {
            assert!(process.apply(user, &person, &[], false).await.unwrap());
            let new = auth::new_token("t", "everything", "", "").unwrap();
            let token = process.store.token_create(user, new).await.unwrap().0;
            assert_eq!(process.admits_token(&token).await, 200);
            process.store.identity_unlink(user, &person).await.unwrap();
            assert_eq!(process.admits_token(&token).await, status, "{user}");
        }
        site.check().await;
    })
    .await;
}

#[tokio::test]
async fn a_later_user_of_the_name_has_no_identity_of_the_earlier_one() {
    timed(async {
        let site = Site::new().await;
        let process = site.process();
        let user = process.found(&person("1"), "ann").await;
        let secret = process.session(&user, &person("1")).await;
        process.store.user_delete(&name("ann")).await.unwrap();
        site.check().await;
        let rows = site.engine.items("mlflow-access").await.unwrap();
        assert!(!rows.iter().any(|row| row.to_string().contains("RENEWAL")), "{rows:?}");
        process.user("ann", false).await;
        assert_eq!(process.admits_session(&secret).await.0, 401);
        let taken = process.store.sso_user(&person("1"), Some("ann"), NewUsers::Create).await.unwrap();
        assert!(matches!(taken, SsoUser::NameTaken(_)), "{}", outcome(&taken));
    })
    .await;
}
