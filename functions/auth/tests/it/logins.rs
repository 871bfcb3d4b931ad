//! Logins of clients.

use auth::store::{LOGIN_INTERVAL_SECONDS, LOGIN_SECONDS, LoginTaken, NewLogin};
use embedded_engine::faults::InjectedFault;
use mlflow_api::{ErrorCode, UserName};

use crate::site::{Process, Site, name, pass, person, timed};

fn login(code: &str) -> NewLogin {
    NewLogin { code: code.to_owned(), device: format!("device of {code}"), name: "laptop".to_owned() }
}

async fn take(process: &Process, code: &str) -> LoginTaken {
    process.store.login_take(code, &format!("device of {code}"), Some(30)).await.unwrap()
}

#[tokio::test]
async fn a_login_yields_one_token_of_the_user_who_approved_it() {
    timed(async {
        let site = Site::new().await;
        let (process, elsewhere) = (site.process(), site.process());
        let ann = process.found(&person("1"), "ann").await.user.name.clone();
        assert!(process.store.login_create(&login("c"), None).await.unwrap());
        assert!(
            !process.store.login_create(&NewLogin { device: "other".to_owned(), ..login("c") }, None).await.unwrap()
        );
        assert!(matches!(take(&elsewhere, "c").await, LoginTaken::Pending));
        assert!(matches!(take(&process, "c").await, LoginTaken::SlowDown));
        pass(LOGIN_INTERVAL_SECONDS.unsigned_abs()).await;
        assert!(matches!(take(&process, "c").await, LoginTaken::Pending));
        let found = process.store.login_find("c").await.unwrap().unwrap();
        assert_eq!((found.name.as_str(), found.user, found.is_refused), ("laptop", None, false));
        assert!(elsewhere.store.login_approve("c", &ann).await.unwrap());
        assert!(process.store.login_approve("c", &ann).await.unwrap());
        assert!(!process.store.login_refuse("c").await.unwrap());
        let stranger = process.store.login_take("c", "device of another", Some(30)).await.unwrap();
        assert!(matches!(stranger, LoginTaken::Unknown));
        let (one, two) = futures::future::join(Box::pin(take(&process, "c")), Box::pin(take(&elsewhere, "c"))).await;
        let made: Vec<_> = [one, two]
            .into_iter()
            .filter_map(|result| match result {
                LoginTaken::Token(secret, token) => Some((secret, token)),
                _ => None,
            })
            .collect();
        assert_eq!(made.len(), 1);
        let (secret, token) = &made[0];
        assert_eq!((secret.user(), token.name.as_str()), (&ann, "laptop"));
        assert_eq!(elsewhere.admits_token(secret).await, 200);
        assert_eq!(process.store.tokens(&ann).await.unwrap(), std::slice::from_ref(token));
        assert!(matches!(take(&process, "c").await, LoginTaken::Unknown));
        site.check().await;
    })
    .await;
}

#[tokio::test]
async fn a_login_that_is_refused_or_has_expired_yields_no_token() {
    timed(async {
        let site = Site::new().await;
        let process = site.process();
        let ann = process.user("ann", false).await;
        process.store.login_create(&login("refused"), None).await.unwrap();
        assert!(process.store.login_refuse("refused").await.unwrap());
        assert!(process.store.login_refuse("refused").await.unwrap());
        assert!(!process.store.login_approve("refused", &ann).await.unwrap());
        assert!(matches!(take(&process, "refused").await, LoginTaken::Refused));
        assert!(process.store.login_create(&login("approved"), Some(&ann)).await.unwrap());
        process.store.login_create(&login("late"), None).await.unwrap();
        pass(LOGIN_SECONDS.unsigned_abs()).await;
        assert!(!process.store.login_approve("late", &ann).await.unwrap());
        assert_eq!(process.store.login_find("late").await.unwrap(), None);
        for code in ["refused", "approved", "late", "never"] {
            assert!(matches!(take(&process, code).await, LoginTaken::Unknown), "{code}");
        }
        // The code of an expired login can be used again.
        pass(1).await;
        assert!(process.store.login_create(&login("late"), None).await.unwrap());
        for invalid in ["", "\n", &"x".repeat(201)] {
            let new = NewLogin { name: invalid.to_owned(), ..login("n") };
            let error = process.store.login_create(&new, None).await.unwrap_err();
            assert_eq!(error.code, ErrorCode::InvalidParameterValue);
        }
    })
    .await;
}

#[tokio::test]
async fn a_login_of_a_user_who_is_disabled_or_deleted_yields_no_token() {
    timed(async {
        let site = Site::new().await;
        let process = site.process();
        let ann: UserName = process.user("ann", false).await;
        for code in ["disabled", "deleted"] {
            assert!(process.store.login_create(&login(code), Some(&ann)).await.unwrap());
        }
        process.store.user_set_disabled(&ann, true).await.unwrap();
        assert!(matches!(take(&process, "disabled").await, LoginTaken::Unknown));
        assert!(!process.store.login_create(&login("new"), Some(&ann)).await.unwrap());
        process.store.user_delete(&ann).await.unwrap();
        process.user("ann", false).await;
        assert!(matches!(take(&process, "deleted").await, LoginTaken::Unknown));
        assert!(!process.store.login_approve("nothing", &name("bob")).await.unwrap());
    })
    .await;
}

#[tokio::test]
async fn a_lost_response_neither_loses_a_login_nor_repeats_it() {
    timed(async {
        let base = Site::new().await;
        let ann = base.process().user("ann", false).await;
        for at in 1.. {
            let site = base.copy();
            let process = site.faulty();
            site.faults.trouble_at(InjectedFault::AnswerLost, at, 1);
            assert!(process.store.login_create(&login("c"), None).await.unwrap(), "{at}");
            assert!(process.store.login_approve("c", &ann).await.unwrap(), "{at}");
            assert!(matches!(take(&process, "c").await, LoginTaken::Token(..)), "{at}");
            assert_eq!(site.process().store.tokens(&ann).await.unwrap().len(), 1, "{at}");
            let calls: u64 = site.faults.all_calls().iter().map(|(_, calls)| calls).sum();
            if calls < at {
                break;
            }
        }
    })
    .await;
}
