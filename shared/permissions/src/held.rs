//! What users hold: their grants, as far as they count.

use std::collections::HashSet;

use access::{Ask, Read, User};
use key_schema::attributes::{HOME, NAME};
use key_schema::{Key, rows};
use mlflow_api::Result;
use mlflow_api::auth::EVERYTHING;
use table::{Item, Query, TableKey};

use crate::basic::Basic;
use crate::grants::Grants;
use crate::keep::{Kept, KeptGrant, granted_key, type_levels};
use crate::resources::{at_home, counts, home_of, is_that, item_granted, item_of, pattern, resources};
use crate::rules::canonical;
use crate::users::{RoleGrant, role_grants, role_key};

impl Basic {
    /// Everything that a user is granted, as far as it counts. One request, one more for roles that were not read a moment ago, and one for
    /// each hundred models and scorers, of which it is looked up whether they are those for which it was granted.
    ///
    /// # Errors
    /// The tables cannot be read.
    pub async fn grants_of(&self, user: &User) -> Result<Grants> {
        let own = self.data.query(Query::of(rows::TypePermissions::partition(&user.name))).await?;
        let of_roles = self.grants_of_roles(&user.roles).await?;
        let mut grants = Grants::default();
        for item in &own {
            add_types(&mut grants, item, user);
        }
        let own: Vec<_> = own.iter().filter_map(KeptGrant::of).filter(|grant| grant.user_id == user.id).collect();
        for (grant, pattern) in own.iter().zip(self.names_of(&own).await?) {
            if let Some(pattern) = pattern {
                grants.add(grant.on.kind(), &pattern, grant.level);
            }
        }
        let keys: Vec<_> = of_roles.iter().filter_map(item_granted).collect();
        let items = self.data.get_many(&keys).await?;
        for grant in of_roles {
            if counts(&grant, item_granted(&grant).and_then(|key| items.get(&key))) {
                grants.add(grant.kind, &canonical(grant.kind, &grant.pattern), grant.level);
            }
        }
        Ok(grants)
    }

    /// What the resources are called now for which these were granted, in their order; `None` for what is gone, whatever has its name now.
    /// One request for each hundred models and scorers.
    ///
    /// # Errors
    /// The table cannot be read.
    pub async fn names_of(&self, granted: &[KeptGrant]) -> Result<Vec<Option<String>>> {
        let keys: Vec<_> = granted.iter().map(|grant| home_of(&grant.on)).collect();
        let items = self.data.get_many(&keys.iter().flatten().cloned().collect::<Vec<_>>()).await?;
        let name = |(grant, key): (&KeptGrant, &Option<Key>)| {
            let item = key.as_ref().and_then(|key| items.get(key));
            is_that(&grant.resource, &grant.on, item).then(|| match &grant.on {
                Kept::RegisteredModel(_) | Kept::Prompt(_) => item?.text(NAME).map(str::to_owned),
                on => Some(pattern(on)),
            })?
        };
        Ok(granted.iter().zip(&keys).map(name).collect())
    }

    /// The grants of roles that are there.
    async fn grants_of_roles(&self, roles: &[u32]) -> Result<Vec<RoleGrant>> {
        let keys = roles.iter().map(|role| self.in_access(role_key(*role))).collect();
        let mut grants = Vec::new();
        for item in self.read_items(keys, Vec::new()).await?.values() {
            grants.extend(role_grants(item)?);
        }
        Ok(grants)
    }

    /// What of a user's grants says something about the guards of a request, from what was read with them.
    pub(crate) async fn grants_in(&self, user: &User, asked: &[Ask], read: &Read) -> Result<Grants> {
        let mut grants = Grants::default();
        let here = |key: Key| read.get(&TableKey::here(key));
        if let Some(item) = here(rows::TypePermissions::key(&user.name)) {
            add_types(&mut grants, item, user);
        }
        let guards: HashSet<_> = asked.iter().map(|ask| &ask.guard).collect();
        for resource in guards.iter().flat_map(|guard| resources(guard)) {
            let item = item_of(&resource).and_then(here);
            // What is granted for a model that was renamed is kept under its home.
            let kept = match item.and_then(|item| item.text(HOME)) {
                Some(home) => self.data.get(&granted_key(&user.name, &at_home(&resource, home))).await?,
                None => here(granted_key(&user.name, &resource)).cloned(),
            };
            let Some(grant) = kept.as_ref().and_then(KeptGrant::of).filter(|grant| grant.user_id == user.id) else {
                continue;
            };
            if is_that(&grant.resource, &resource, item) {
                grants.add(resource.kind(), &pattern(&resource), grant.level);
            }
        }
        for role in &user.roles {
            let key = TableKey { table: Some(self.access.name().to_owned()), key: role_key(*role) };
            for grant in read.get(&key).map(role_grants).transpose()?.into_iter().flatten() {
                if counts(&grant, item_granted(&grant).and_then(here)) {
                    grants.add(grant.kind, &canonical(grant.kind, &grant.pattern), grant.level);
                }
            }
        }
        Ok(grants)
    }
}

/// Adds what a user is granted for all of a type.
fn add_types(grants: &mut Grants, item: &Item, user: &User) {
    for (kind, level) in type_levels(item, user.id) {
        grants.add(kind, EVERYTHING, level);
    }
}
