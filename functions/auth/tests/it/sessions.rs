//! Sessions and tokens: what they are bound to, and what ends them.

use mlflow_api::ErrorCode;
use permissions::UserSecret;

use crate::site::{PASSWORD, Site, head, name, pass, person, timed};

#[tokio::test]
async fn a_session_ends_with_its_user_and_by_signing_out() {
    timed(async {
        let site = Site::new().await;
        let (process, elsewhere) = (site.process(), site.process());
        let ann = person("1");
        let user = process.found(&ann, "ann").await;
        let secret = process.session(&user, &ann).await;
        assert_eq!(elsewhere.admits_session(&secret).await.0, 200);
        process.store.user_set_disabled(&name("ann"), true).await.unwrap();
        pass(1).await;
        assert_eq!(elsewhere.admits_session(&secret).await, (401, None));
        assert!(!process.open(&user, &ann, &UserSecret::new(name("ann"))).await.unwrap());
        process.store.user_set_disabled(&name("ann"), false).await.unwrap();
        pass(1).await;
        assert_eq!(elsewhere.admits_session(&secret).await.0, 200);
        process.store.session_end(&secret).await.unwrap();
        assert_eq!(elsewhere.admits_session(&secret).await, (401, None));
        let rows = site.engine.items("mlflow-access").await.unwrap();
        assert!(!rows.iter().any(|row| row.to_string().contains("RENEWAL")), "{rows:?}");
    })
    .await;
}

#[tokio::test]
async fn a_new_password_does_not_end_a_session_of_single_sign_on() {
    timed(async {
        let site = Site::new().await;
        let process = site.process();
        let ann = process.user("ann", false).await;
        process.store.identity_link(&ann, &person("1")).await.unwrap();
        let user = process.found(&person("1"), "").await;
        let by_identity = process.session(&user, &person("1")).await;
        let by_password = process.store.session_open(&ann, PASSWORD.to_owned(), None).await.unwrap().unwrap();
        for secret in [&by_identity, &by_password] {
            assert_eq!(process.admits_session(secret).await.0, 200);
        }
        process.store.user_set_password(&ann, "another horse battery".to_owned()).await.unwrap();
        pass(1).await;
        assert_eq!(process.admits_session(&by_identity).await.0, 200);
        assert_eq!(process.admits_session(&by_password).await, (401, None));
        // It still has to be renewed.
        pass(15 * 60).await;
        assert_eq!(process.admits_session(&by_identity).await.0, 401);
    })
    .await;
}

#[tokio::test]
async fn all_sessions_renewals_and_tokens_end_at_once() {
    timed(async {
        let site = Site::new().await;
        let process = site.process();
        let ann = person("1");
        let user = process.found(&ann, "ann").await;
        let secrets = [process.session(&user, &ann).await, process.session(&user, &ann).await];
        let new = auth::new_token("t", "everything", "", "").unwrap();
        let token = process.store.token_create(&name("ann"), new).await.unwrap().0;
        let ended = process.store.all_end().await.unwrap();
        assert_eq!((ended.sessions, ended.tokens), (2, 1));
        for secret in &secrets {
            assert_eq!(process.admits_session(secret).await, (401, None));
        }
        assert_eq!(process.admits_token(&token).await, 401);
        let rows = site.engine.items("mlflow-access").await.unwrap();
        assert!(!rows.iter().any(|row| row.to_string().contains("RENEWAL")), "{rows:?}");
        site.check().await;
        // The person signs in again.
        assert_eq!(process.admits_session(&process.session(&user, &ann).await).await.0, 200);
    })
    .await;
}

#[tokio::test]
async fn the_oldest_session_ends_with_its_renewal_where_a_user_has_many() {
    timed(async {
        let site = Site::new().await;
        let process = site.process();
        let ann = person("1");
        let user = process.found(&ann, "ann").await;
        let first = process.session(&user, &ann).await;
        pass(1).await;
        for _ in 0..auth::store::MAX_SESSIONS {
            process.session(&user, &ann).await;
        }
        assert_eq!(process.admits_session(&first).await, (401, None));
        let rows = site.engine.items("mlflow-access").await.unwrap();
        let renewals = rows.iter().filter(|row| row.to_string().contains("U#RENEWAL#"));
        assert_eq!(renewals.count(), auth::store::MAX_SESSIONS);
    })
    .await;
}

#[tokio::test]
async fn tokens_of_machines_are_short_and_not_listed() {
    timed(async {
        let site = Site::new().await;
        let (process, elsewhere) = (site.process(), site.process());
        let ann = process.user("ann", false).await;
        let everything = access::Restriction::default();
        let exchange = async |minutes| process.store.machine_token_create("ci", &ann, everything, minutes).await;
        let (secret, token) = exchange(60).await.unwrap().unwrap();
        assert_eq!((token.name.as_str(), token.issued_by.as_deref()), ("ci", Some("ci")));
        assert_eq!(elsewhere.admits_token(&secret).await, 200);
        assert_eq!(process.store.tokens(&ann).await.unwrap(), []);
        pass(3_599).await;
        assert_eq!(elsewhere.admits_token(&secret).await, 200);
        pass(2).await;
        assert_eq!(elsewhere.admits_token(&secret).await, 401);
        for minutes in [0, 61] {
            assert_eq!(exchange(minutes).await.unwrap_err().code, ErrorCode::InvalidParameterValue);
        }
        for _ in 0..auth::store::MAX_MACHINE_TOKENS {
            exchange(60).await.unwrap().unwrap();
        }
        assert_eq!(exchange(60).await.unwrap_err().code, ErrorCode::ResourceExhausted);
        // Expired tokens are deleted.
        let stored = async || {
            let all = key_schema::access_rows::Token::all(&ann);
            site.access().query(table::Query::of(all)).await.unwrap().len()
        };
        pass(3_601).await;
        let before = stored().await;
        exchange(60).await.unwrap().unwrap();
        assert_eq!(stored().await, before - 99);
        process.store.user_set_disabled(&ann, true).await.unwrap();
        assert!(exchange(60).await.unwrap().is_none());
        assert!(process.store.machine_token_create("ci", &name("bob"), everything, 60).await.unwrap().is_none());
    })
    .await;
}

#[tokio::test]
async fn an_overdue_session_leads_a_page_to_the_sign_in_page() {
    timed(async {
        let site = Site::new().await;
        let process = site.process();
        let ann = person("1");
        let user = process.found(&ann, "ann").await;
        let secret = process.session(&user, &ann).await;
        pass(15 * 60).await;
        let set = permissions::cookies::session_cookies(&head(&[]), &secret, 60);
        let cookies = set.map(|cookie| cookie.split(';').next().unwrap().to_owned()).join("; ");
        let mut arrived = head(&[("cookie", &cookies)]);
        arrived.method = http::Method::GET;
        arrived.path = "/tokens".to_owned();
        let error = access::Authorizer::authenticate(&process.authorizer, &arrived).await.unwrap_err();
        let header =
            |name: &str| error.headers.iter().find(|(other, _)| *other == name).map(|(_, value)| value.as_str());
        assert_eq!(header("location"), Some("/signin?next=%2Ftokens"));
        assert_eq!(header(permissions::SESSION_HEADER), Some(permissions::RENEW));
    })
    .await;
}
