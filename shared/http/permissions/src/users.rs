//! Users and roles, as the table of access has them.

use access::User;
use entities::unreadable;
use key_schema::attributes::{Attribute, Count, DISABLED, GRANTS, IS_ADMIN, PASSWORD, ROLES, USER_ID, VERSION};
use key_schema::{Ordinal, access_rows};
use mlflow_api::auth::{GrantType, Level};
use mlflow_api::{Result, UserName};
use table::{Item, Table};

use crate::passwords::PasswordHash;
use crate::place::Place;

/// A user's item.
#[derive(Clone, Debug)]
pub struct Account {
    /// The user.
    pub user: User,
    /// The hash of the password; `None` for one who has tokens only.
    pub password: Option<PasswordHash>,
    /// Whether the user is let in no longer.
    pub is_disabled: bool,
    /// By role: the id of the assignment.
    pub assignments: Vec<(u32, u32)>,
}

impl Account {
    /// Reads the user of a name, consistently. One request, one read unit.
    ///
    /// # Errors
    /// The table cannot be read, or the item makes no sense.
    pub async fn find(access: &Table, name: &UserName) -> Result<Option<Self>> {
        access.get(&access_rows::User::key(name)).await?.map(|item| Self::of(&item)).transpose()
    }

    /// The user of an item.
    ///
    /// # Errors
    /// An internal one, if it cannot be read.
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
        })
    }
}

/// One thing that a role grants, as the role's item has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoleGrant {
    /// Id.
    pub id: u32,
    /// How much.
    pub level: Level,
    /// The type of the resource.
    pub kind: GrantType,
    /// The id that told the resource from others of its name when the grant was made; empty for all
    /// of a type, and where there was none.
    pub resource: String,
    /// The resource, or `*`.
    pub pattern: String,
}

impl RoleGrant {
    /// Its form in the role's item. The part that clients choose comes last.
    #[must_use]
    pub fn written(&self) -> String {
        format!("{} {} {} {}", self.level, self.kind.name(), self.resource, self.pattern)
    }

    fn read(id: &str, text: &str) -> Option<Self> {
        let mut parts = text.splitn(4, ' ');
        Some(Self {
            id: id.parse().ok()?,
            level: Level::from_name(parts.next()?)?,
            kind: GrantType::from_name(parts.next()?)?,
            resource: parts.next()?.to_owned(),
            pattern: parts.next()?.to_owned(),
        })
    }
}

/// The grants of a role, by their ids.
///
/// # Errors
/// An internal one, if the role's item cannot be read.
pub fn role_grants(role: &Item) -> Result<Vec<RoleGrant>> {
    let grants = role.map(GRANTS).into_iter().flatten();
    let grant = |(id, text): (&String, &table::Value)| {
        text.as_s()
            .ok()
            .and_then(|text| RoleGrant::read(id, text))
            .ok_or_else(|| unreadable(role, "what a role grants"))
    };
    let mut grants = grants.map(grant).collect::<Result<Vec<_>>>()?;
    grants.sort_by_key(|grant| grant.id);
    Ok(grants)
}

/// The grants of a role in a workspace: none, unless it is a role of that one.
///
/// # Errors
/// An internal one, if the role's item cannot be read.
pub(crate) fn role_grants_in(role: &Item, place: &Place) -> Result<Vec<RoleGrant>> {
    if Place::of_role(role).as_ref() == Some(place) { role_grants(role) } else { Ok(Vec::new()) }
}

/// The key of a role.
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
            level: Level::Edit,
            kind: GrantType::RegisteredModel,
            resource: resource.to_owned(),
            pattern: pattern.to_owned(),
        };
        for grant in [grant("", "*"), grant("01H", "a name with blanks"), grant("", " ")] {
            assert_eq!(RoleGrant::read("7", &grant.written()), Some(grant));
        }
        assert_eq!(RoleGrant::read("7", "EDIT nothing  x"), None);
    }
}
