//! Copies users, with their passwords, identities, roles and grants, and the configuration of single
//! sign-on. Sessions with their renewals, tokens, logins and secrets are not copied.

use key_schema::Key;
use key_schema::access_rows::{
    Counter, GrantOfRole, Identity, ListedRole, ListedUser, Principal, Providers, Role, RoleMember, RoleName, User,
};
use table::{Query, Table};

use super::source::CopySource;
use crate::Failure;
use crate::transfer::import::TableWriter;

/// Returns whether an access table has users.
pub(super) async fn has_users(access: &Table) -> Result<bool, Failure> {
    let page = access.query_page(&Query::of(ListedUser::all()).limit(1)).await;
    Ok(!page.map_err(|failure| format!("cannot read the access table: {failure:?}"))?.items.is_empty())
}

/// Copies users with their roles, and returns the number of users.
///
/// # Errors
/// The source has no access table, or the target cannot be written.
pub(super) async fn copy_access(source: &CopySource, writer: &TableWriter) -> Result<usize, Failure> {
    let mut batches = source.access_items().await?.ok_or("the source has no users")?;
    let mut users = 0;
    while let Some(batch) = batches.recv().await {
        let kept = batch?.into_iter().filter(|item| item.key().is_some_and(|key| is_copied(&key)));
        let kept: Vec<_> = kept.collect();
        users += kept.iter().filter_map(table::Item::key).filter(|key| User::parse(key).is_some()).count();
        writer.put_all(kept).await?;
    }
    Ok(users)
}

/// Returns whether a row of the access table is copied. Besides sessions, tokens, logins and
/// secrets, this excludes row types that this version does not support.
fn is_copied(key: &Key) -> bool {
    User::parse(key).is_some()
        || ListedUser::parse(key).is_some()
        || Identity::parse(key).is_some()
        || Providers::parse(key).is_some()
        || Principal::parse(key).is_some()
        || Role::parse(key).is_some()
        || RoleMember::parse(key).is_some()
        || RoleName::parse(key).is_some()
        || ListedRole::parse(key).is_some()
        || GrantOfRole::parse(key).is_some()
        || Counter::parse(key).is_some()
}

#[cfg(test)]
mod tests {
    use key_schema::Ordinal;
    use key_schema::access_rows::{Login, Renewal, Secret, Session, Token};
    use mlflow_api::UserName;

    use super::*;

    #[test]
    fn nothing_that_lets_somebody_in_is_copied() {
        let user = UserName::named("a#b").unwrap();
        for key in [
            Session::key(&user, &"d".into()),
            Renewal::key(&user, &"d".into()),
            Token::key(&user, &"d".into()),
            Login::key(&"d".into()),
            Secret::key(&"forms".into()),
        ] {
            assert!(!is_copied(&key), "{key:?}");
        }
        let copied = [
            User::key(&user),
            ListedUser::key(&Ordinal(1)),
            Identity::key(&"d".into()),
            Providers::key(),
            Principal::key(&"p".into()),
            Role::key(&Ordinal(1)),
            RoleMember::key(&Ordinal(1), &user),
            RoleName::key(&"w".into(), &"n".into()),
            ListedRole::key(&Ordinal(1)),
            GrantOfRole::key(&Ordinal(1)),
            Counter::key(&"users".into()),
        ];
        for key in copied {
            assert!(is_copied(&key), "{key:?}");
        }
    }
}
