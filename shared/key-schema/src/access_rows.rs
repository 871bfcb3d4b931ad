//! The table of access: users and their roles. Functions that serve data may only read it. It has
//! no stream, so that no hash of a password leaves it. The rights that users are granted themselves
//! are in the other table, next to the resources: [`rows`](crate::rows).

use model::UserName;

use crate::attributes::CREATION;
use crate::rows::RowDescription;
use crate::{Field, Key, KeyRange, Name, Ordinal, Prefix, Segment};

rows! {
    /// A user.
    User = "USER#" <user: UserName> / "U#META" {
        USER_ID: Count required "the user's id, which no other user ever gets",
        PASSWORD: Text "the hash of the password (Argon2id), with its salt and its cost; missing of one who has tokens only",
        IS_ADMIN: Count required "1, if the user may do everything",
        VERSION: Count required "how often the item has changed: what was found out about the user with an older one counts no longer",
        ROLES: Counts required "by the id of a role that the user has: the id of the assignment",
        DISABLED: Count "1, if the user is let in no longer",
        ..CREATION
    };
    /// A browser that has signed in as a user, by the digest of its secret.
    Session = "USER#" <user: UserName> / "U#SESSION#" <digest: Field> {
        USER_ID: Count required "the user's id: the session of one of the same name who came earlier is none",
        OPENED_WITH: Text required "a digest of the hash of the password: another password ends the session",
        EXPIRES: Number required "when it ends, in seconds"
    };
    /// A token of a user, by the digest of its secret.
    Token = "USER#" <user: UserName> / "U#TOKEN#" <digest: Field> {
        USER_ID: Count required "the user's id: the token of one of the same name who came earlier is none",
        TOKEN: Count required "the token's id",
        NAME: Text required "what the user calls it",
        ONLY: Text required "what may be done with it: everything, read, or ingest",
        EXPERIMENT: ExperimentId "the one experiment that it is for",
        CREATION_TIME: Number required "when it was made, in ms",
        EXPIRES: Number "when it ends, in seconds; missing, if it does not"
    };
    /// Lists all users, in the order of their ids.
    ListedUser = "USERS" / "UID#" <user_id: Ordinal> { USER: Text required "the user's name" };

    /// A principal of AWS whose signed requests are those of a user, or are refused.
    Principal = "PRINCIPALS" / "PRI#" <principal: Field> {
        USER: Text "the user's name; missing, if the principal is refused",
        USER_ID: Count "the user's id: one of the same name who came later is not meant"
    };

    /// A role, with all that it grants.
    Role = "ROLE#" <role: Ordinal> / "R#META" {
        NAME: Text required "name",
        IN_WORKSPACE: Text required "the name of its workspace",
        WORKSPACE_ID: Text "the id of its workspace; missing in the default workspace, and in one made by 0.1.0",
        DESCRIPTION: Text "what somebody wrote about it",
        VERSION: Count required "how often the item has changed",
        GRANTS: Texts required "by the id of a grant: level, type, what tells the resource from others of its name, and pattern",
        ..CREATION
    };
    /// A user who has the role.
    RoleMember = "ROLE#" <role: Ordinal> / "R#USER#" <user: UserName> {
        USER_ID: Count required "the user's id: one of the same name who came later does not have the role",
        ASSIGNMENT: Count required "the id of the assignment"
    };
    /// Claims the name of a role in a workspace, named by its id where roles belong to it by that.
    RoleName = "ROLES" / "RNAME#" <workspace: Name> "#" <name: Name> {
        NAME: Text required "the name, which may be cut in the key",
        ROLE: Count required "the role that has it"
    };
    /// Lists all roles, in the order of their ids.
    ListedRole = "ROLES" / "RID#" <role: Ordinal>;
    /// The role of a grant.
    GrantOfRole = "ROLES" / "GRANT#" <grant: Ordinal> { ROLE: Count required "the role" };

    /// The last id that was given out of a kind: of users, roles, grants of roles, assignments.
    Counter = "COUNTERS" / "CNT#" <kind: Field> { COUNT: Count required "the id" };
    /// A secret that all processes of the auth function share.
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
            Token::key(&user, &"d".into()),
            ListedUser::key(&Ordinal(1)),
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
        let longest = "!".repeat(UserName::LONGEST);
        let user = UserName::named(&longest).unwrap();
        assert_eq!(User::parse(&User::key(&user)), Some(User { user }));
    }
}
