//! The access table: users and their roles. Functions that serve data can only read it. It has no
//! stream, so that password hashes never leave it. Grants that are given to users directly are in
//! the data table, next to the resources: [`rows`](crate::rows).

use model::UserName;

use crate::attributes::CREATION;
use crate::rows::RowDescription;
use crate::{Field, Key, KeyRange, Name, Ordinal, Prefix, Segment};

rows! {
    /// A user.
    User = "USER#" <user: UserName> / "U#META" {
        USER_ID: Count required "the user's id, which is never reused",
        PASSWORD: Text "the password hash (Argon2id), with its salt and cost; missing for users who only have tokens",
        IS_ADMIN: Count required "1 if the user has full access",
        VERSION: Count required "how often the item has changed: what was derived from an older version is invalid",
        ROLES: Counts required "the user's roles: by the id of a role, the id of its assignment",
        DISABLED: Count "1 if the user's access is revoked",
        IDENTITIES: Texts "the identities that the user signs in with: by their digests, issuer and subject, separated by a blank",
        RULE_ROLES: Texts "the roles that rules of identity providers gave: by the id of a role, the digest of the identity",
        RULE_ADMINISTRATOR: Text "the digest of the identity, if a rule of its provider gave the user full access",
        CONFIRMED_UNTIL: Number "until when a provider's confirmation of the user covers the user's API tokens, in seconds; missing if no provider ever confirmed the user",
        ..CREATION
    };
    /// A browser session of a user, keyed by the digest of its secret.
    Session = "USER#" <user: UserName> / "U#SESSION#" <digest: Field> {
        USER_ID: Count required "the user's id: the session does not apply to a later user of the same name",
        OPENED_WITH: Text required "a digest of the password hash: changing the password ends the session; for single sign-on, `identity:` and the digest of the identity: unlinking the identity ends the session",
        RENEW_BY: Number "until when the session has to be renewed with its provider, in seconds; missing if it was opened with a password",
        EXPIRES: Number required "when it expires, in seconds"
    };
    /// The refresh token of a session that was opened by single sign-on. Only the auth function can
    /// decrypt it. A process claims the renewal before it presents the token, so that no token is
    /// presented twice.
    Renewal = "USER#" <user: UserName> / "U#RENEWAL#" <digest: Field> {
        REFRESH: Bytes "the refresh token, encrypted; missing if it was presented and the response was lost",
        PROVIDER: Text required "the name of the provider",
        GENERATION: Count required "how often a claim has ended: a delayed claim of an earlier generation is refused",
        CLAIMED: Text "the random id of the claim, while a process renews the session",
        CLAIMED_UNTIL: Number "when the claim expires, in seconds: the process has died, and the session ends",
        GRACE_UNTIL: Number "until when the renewal may be postponed because the provider cannot be reached, in seconds; missing if it is not postponed",
        EXPIRES: Number required "when the session expires, in seconds"
    };
    /// A token of a user, keyed by the digest of its secret.
    Token = "USER#" <user: UserName> / "U#TOKEN#" <digest: Field> {
        USER_ID: Count required "the user's id: the token does not apply to a later user of the same name",
        TOKEN: Count required "the token's id",
        NAME: Text required "the name that the user gave it",
        ONLY: Text required "its scope: everything, read, or ingest",
        EXPERIMENT: ExperimentId "the experiment that it is limited to",
        CREATION_TIME: Number required "when it was created, in ms",
        ISSUED_BY: Text "the rule by which a machine exchanged a JWT for it; missing for a token of a person",
        EXPIRES: Number "when it expires, in seconds; missing if it does not"
    };
    /// Lists all users, ordered by id.
    ListedUser = "USERS" / "UID#" <user_id: Ordinal> { USER: Text required "the user's name" };

    /// An identity: a person as a provider identifies them. Keyed by the digest of issuer and
    /// subject.
    Identity = "IDENTITY#" <digest: Field> / "I#META" {
        USER: Text required "the name of the user whom the identity is linked to",
        USER_ID: Count required "the user's id: a later user of the same name does not have the identity",
        ISSUER: Text required "the issuer of the provider",
        SUBJECT: Text required "the id of the person at the provider",
        CREATION_TIME: Number required "when it was linked, in ms"
    };
    /// A login of a client that waits for a user's approval, or for the client to take its token.
    /// Keyed by the digest of the code.
    Login = "LOGIN#" <digest: Field> / "L#META" {
        DEVICE: Text required "what proves that the client started the login: the digest of a secret, or a PKCE challenge",
        NAME: Text required "the name of the token, chosen by the client",
        USER: Text "the name of the user who approved the login",
        USER_ID: Count "the user's id",
        DISABLED: Count "1 if a user refused the login",
        POLLED: Number "when the client last polled for the token, in ms",
        EXPIRES: Number required "when it expires, in seconds"
    };
    /// The configuration of single sign-on.
    Providers = "PROVIDERS" / "PRO#META" { CONFIGURATION: Text required "identity providers and their rules, as JSON" };

    /// An IAM principal whose signed requests are made as a user, or are rejected.
    Principal = "PRINCIPALS" / "PRI#" <principal: Field> {
        USER: Text "the user's name; missing if requests of the principal are rejected",
        USER_ID: Count "the user's id: the mapping does not apply to a later user of the same name"
    };

    /// A role, with its grants.
    Role = "ROLE#" <role: Ordinal> / "R#META" {
        NAME: Text required "name",
        IN_WORKSPACE: Text required "the name of its workspace",
        WORKSPACE_ID: Text "the id of its workspace; missing for the default workspace, and for one created by 0.1.0",
        DESCRIPTION: Text "description",
        VERSION: Count required "how often the item has changed",
        GRANTS: Texts required "by the id of a grant: level, type, what distinguishes the resource from others of its name, and pattern",
        ..CREATION
    };
    /// A user who has the role.
    RoleMember = "ROLE#" <role: Ordinal> / "R#USER#" <user: UserName> {
        USER_ID: Count required "the user's id: a later user of the same name does not have the role",
        ASSIGNMENT: Count required "the id of the assignment"
    };
    /// Claims the name of a role in a workspace. The key contains the workspace's name, or its id if roles
    /// were created with that.
    RoleName = "ROLES" / "RNAME#" <workspace: Name> "#" <name: Name> {
        NAME: Text required "the name, which may be truncated in the key",
        ROLE: Count required "the role that has it"
    };
    /// Lists all roles, ordered by id.
    ListedRole = "ROLES" / "RID#" <role: Ordinal>;
    /// Maps a grant to its role.
    GrantOfRole = "ROLES" / "GRANT#" <grant: Ordinal> { ROLE: Count required "the role" };

    /// The last id that was assigned, by kind: users, roles, grants of roles, assignments.
    Counter = "COUNTERS" / "CNT#" <kind: Field> { COUNT: Count required "the id" };
    /// A secret shared by all processes of the auth function.
    Secret = "SECRETS" / "SEC#" <kind: Field> { SECRET: Bytes required "the secret" };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_key_is_one_of_both_tables() {
        let user = UserName::named("a#b").unwrap();
        let keys = [
            User::key(&user),
            Session::key(&user, &"d".into()),
            Renewal::key(&user, &"d".into()),
            Token::key(&user, &"d".into()),
            ListedUser::key(&Ordinal(1)),
            Identity::key(&"d".into()),
            Login::key(&"d".into()),
            Providers::key(),
            Principal::key(&"p".into()),
            Role::key(&Ordinal(1)),
            RoleMember::key(&Ordinal(1), &user),
            RoleName::key(&"w".into(), &"n".into()),
            ListedRole::key(&Ordinal(1)),
            GrantOfRole::key(&Ordinal(1)),
            Counter::key(&"users".into()),
            Secret::key(&"forms".into()),
        ];
        assert_eq!(keys.len(), ROWS.len());
        for (key, row) in keys.iter().zip(ROWS) {
            assert!((row.reads)(key), "{key:?}");
            assert_eq!(
                ROWS.iter().chain(crate::rows::ROWS).filter(|other| (other.has_form)(key)).count(),
                1,
                "{key:?}"
            );
        }
    }

    #[test]
    fn no_name_of_a_user_is_cut() {
        let longest = "!".repeat(UserName::MAX_BYTES);
        let user = UserName::named(&longest).unwrap();
        assert_eq!(User::parse(&User::key(&user)), Some(User { user }));
    }
}
