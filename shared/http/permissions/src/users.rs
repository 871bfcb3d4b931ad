//! Stored users and roles, in the access table.

use std::collections::BTreeMap;

use access::User;
use entities::unreadable;
use key_schema::attributes::{
    Attribute, CONFIRMED_UNTIL, Count, DISABLED, GRANTS, IDENTITIES, IS_ADMIN, PASSWORD, ROLES, RULE_ADMINISTRATOR,
    RULE_ROLES, Texts, USER_ID, VERSION,
};
use key_schema::{Ordinal, access_rows};
use mlflow_api::auth::{GrantType, PermissionLevel};
use mlflow_api::{Result, UserName};
use table::{Item, Table};

use crate::expiry::is_over;
use crate::passwords::PasswordHash;
use crate::workspace_ref::WorkspaceRef;

/// A user's account, as stored in the user's item.
#[derive(Clone, Debug)]
pub struct Account {
    /// The user.
    pub user: User,
    /// Hash of the password; `None` for a user who only has tokens.
    pub password: Option<PasswordHash>,
    /// Whether the account is disabled.
    pub is_disabled: bool,
    /// Pairs of a role's id and the id of its assignment to the user.
    pub assignments: Vec<(u32, u32)>,
    /// The identities that the user signs in with: by digest, the issuer and the subject, separated
    /// by a blank. Issuers contain no blank.
    pub identities: BTreeMap<String, String>,
    /// The roles that rules of identity providers gave: by the id of a role, the digest of the
    /// identity.
    pub rule_roles: BTreeMap<u32, String>,
    /// The digest of the identity, if a rule of its provider made the user an administrator.
    pub rule_administrator: Option<String>,
    /// Until when a provider's confirmation of the user covers the user's API tokens, in seconds
    /// since 1970. `None` if no provider ever confirmed the user.
    pub confirmed_until: Option<i64>,
}

impl Account {
    /// Reads the account of a user with a strongly consistent read. One request, one read unit.
    ///
    /// # Errors
    /// Returns an error if the table cannot be read, or if the item cannot be parsed.
    pub async fn find(access: &Table, name: &UserName) -> Result<Option<Self>> {
        access.get(&access_rows::User::key(name)).await?.map(|item| Self::of(&item)).transpose()
    }

    /// Reads an account from a user's item.
    ///
    /// # Errors
    /// An internal error if the item cannot be parsed.
    pub fn of(item: &Item) -> Result<Self> {
        let unreadable = || unreadable(item, "a user");
        let name = item.key().and_then(|key| access_rows::User::parse(&key)).ok_or_else(unreadable)?.user;
        let count = |attribute: Attribute<Count>| item.get(attribute).ok_or_else(unreadable);
        let mut assignments = Vec::new();
        for (role, id) in item.map(ROLES).into_iter().flatten() {
            let id = id.as_n().ok().and_then(|id| id.parse().ok()).ok_or_else(unreadable)?;
            assignments.push((role.parse().map_err(|_| unreadable())?, id));
        }
        assignments.sort_unstable();
        let texts = |attribute: Attribute<Texts>| {
            let entries = item.map(attribute).into_iter().flatten();
            entries.map(|(key, value)| Ok((key.clone(), value.as_s().map_err(|_| unreadable())?.clone())))
        };
        let rule_roles = texts(RULE_ROLES).map(|entry: Result<(String, String)>| {
            let (role, identity) = entry?;
            Ok((role.parse().map_err(|_| unreadable())?, identity))
        });
        Ok(Self {
            user: User {
                name,
                id: count(USER_ID)?,
                is_admin: count(IS_ADMIN)? == 1,
                roles: assignments.iter().map(|(role, _)| *role).collect(),
                version: count(VERSION)?,
            },
            password: item.get(PASSWORD).map(PasswordHash::stored),
            is_disabled: item.get(DISABLED) == Some(1),
            assignments,
            identities: texts(IDENTITIES).collect::<Result<_>>()?,
            rule_roles: rule_roles.collect::<Result<_>>()?,
            rule_administrator: item.get(RULE_ADMINISTRATOR).map(str::to_owned),
            confirmed_until: item.get(CONFIRMED_UNTIL),
        })
    }

    /// Checks whether the user's API tokens are covered: no provider confirms the user, or the last
    /// confirmation is recent enough.
    #[must_use]
    pub fn is_confirmed(&self) -> bool {
        self.confirmed_until.is_none_or(|end| !is_over(end))
    }
}

/// A grant of a role, as stored in the role's item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoleGrant {
    /// Id.
    pub id: u32,
    /// Level of the grant.
    pub level: PermissionLevel,
    /// Type of the resource.
    pub kind: GrantType,
    /// Id that distinguished the resource from others with the same name when the grant was made.
    /// Empty for a grant for a whole type, and if the resource did not exist at that time.
    pub resource: String,
    /// Pattern of the resource, or `*`.
    pub pattern: String,
}

impl RoleGrant {
    /// Returns the text that represents the grant in the role's item. The client-controlled part
    /// comes last.
    #[must_use]
    pub fn to_text(&self) -> String {
        format!("{} {} {} {}", self.level, self.kind.name(), self.resource, self.pattern)
    }

    fn read(id: &str, text: &str) -> Option<Self> {
        let mut parts = text.splitn(4, ' ');
        Some(Self {
            id: id.parse().ok()?,
            level: PermissionLevel::from_name(parts.next()?)?,
            kind: GrantType::from_name(parts.next()?)?,
            resource: parts.next()?.to_owned(),
            pattern: parts.next()?.to_owned(),
        })
    }
}

/// Returns the grants of a role, sorted by id.
///
/// # Errors
/// An internal error if the role's item cannot be parsed.
pub fn role_grants(role: &Item) -> Result<Vec<RoleGrant>> {
    let grants = role.map(GRANTS).into_iter().flatten();
    let grant = |(id, text): (&String, &table::Value)| {
        text.as_s()
            .ok()
            .and_then(|text| RoleGrant::read(id, text))
            .ok_or_else(|| unreadable(role, "the grants of a role"))
    };
    let mut grants = grants.map(grant).collect::<Result<Vec<_>>>()?;
    grants.sort_by_key(|grant| grant.id);
    Ok(grants)
}

/// Returns the grants of a role in a workspace. Empty if the role belongs to another workspace.
///
/// # Errors
/// An internal error if the role's item cannot be parsed.
pub(crate) fn role_grants_in(role: &Item, place: &WorkspaceRef) -> Result<Vec<RoleGrant>> {
    if WorkspaceRef::of_role(role).as_ref() == Some(place) { role_grants(role) } else { Ok(Vec::new()) }
}

/// Returns the key of a role.
#[must_use]
pub(crate) fn role_key(role: u32) -> key_schema::Key {
    access_rows::Role::key(&Ordinal(role))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_role_grants_is_read_as_written() {
        let grant = |resource: &str, pattern: &str| RoleGrant {
            id: 7,
            level: PermissionLevel::Edit,
            kind: GrantType::RegisteredModel,
            resource: resource.to_owned(),
            pattern: pattern.to_owned(),
        };
        for grant in [grant("", "*"), grant("01H", "a name with blanks"), grant("", " ")] {
            assert_eq!(RoleGrant::read("7", &grant.to_text()), Some(grant));
        }
        assert_eq!(RoleGrant::read("7", "EDIT nothing  x"), None);
    }
}
