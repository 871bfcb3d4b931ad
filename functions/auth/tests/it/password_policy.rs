//! Servers on which only named administrators have passwords.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::header::AUTHORIZATION;
use mlflow_api::ErrorCode;
use permissions::PasswordPolicy;
use serde_json::json;

use crate::site::{PASSWORD, Process, Site, head, person, timed};

async fn admits_password(process: &Process, user: &str) -> u16 {
    let credentials = STANDARD.encode(format!("{user}:{PASSWORD}"));
    process.admits(&head(&[(AUTHORIZATION.as_str(), &format!("Basic {credentials}"))])).await.0
}

#[tokio::test]
async fn passwords_are_disabled_for_everyone_but_the_named_administrators() {
    timed(async {
        let site = Site::new().await;
        let everyone = site.process();
        let users = [("root", true), ("other", true), ("ann", false)];
        for (user, is_admin) in users {
            everyone.user(user, is_admin).await;
        }
        let process = site.process_with(PasswordPolicy::parse(Some("off"), Some("root,ann")).unwrap());
        for (user, _) in users {
            let name = crate::site::name(user);
            let session = everyone.store.session_open(&name, PASSWORD.to_owned(), None).await.unwrap().unwrap();
            assert_eq!((admits_password(&everyone, user).await, everyone.admits_session(&session).await.0), (200, 200));
            let is_named = user == "root";
            let status = if is_named { 200 } else { 401 };
            assert_eq!(admits_password(&process, user).await, status, "{user}");
            assert_eq!(process.admits_session(&session).await.0, status, "{user}");
            let opened = process.store.session_open(&name, PASSWORD.to_owned(), None).await.unwrap();
            assert_eq!(opened.is_some(), is_named, "{user}");
            assert_eq!(process.store.has_password(&name, PASSWORD.to_owned(), None).await.unwrap(), is_named);
            let allowed = process.store.check_password_allowed(&name).await;
            assert_eq!(allowed.err().map(|error| error.code), (!is_named).then_some(ErrorCode::PermissionDenied));
            everyone.store.check_password_allowed(&name).await.unwrap();
        }
        assert!(process.store.check_creates_passwords().is_err() && everyone.store.check_creates_passwords().is_ok());
        // The endpoints refuse new passwords with a sentence.
        let body = |user: &str| json!({ "username": user, "password": "another horse battery" });
        for (method, path, user) in [("PATCH", "update-password", "ann"), ("POST", "create", "bob")] {
            let refused = process.call(method, &format!("2.0/mlflow/users/{path}"), body(user)).await;
            let message = refused.refused(403, "PERMISSION_DENIED");
            assert!(message.starts_with("Passwords are disabled on this server"), "{message}");
        }
        process.call("PATCH", "2.0/mlflow/users/update-password", body("root")).await.ok();
        everyone.call("POST", "2.0/mlflow/users/create", body("bob")).await.ok();
        // Identities and tokens are not affected.
        let ann = crate::site::name("ann");
        process.store.identity_link(&ann, &person("1")).await.unwrap();
        let user = process.found(&person("1"), "").await;
        assert_eq!(process.admits_session(&process.session(&user, &person("1")).await).await.0, 200);
        let new = auth::new_token("t", "everything", "", "").unwrap();
        let token = process.store.token_create(&ann, new).await.unwrap().0;
        assert_eq!(process.admits_token(&token).await, 200);
    })
    .await;
}
