//! What users are granted themselves: in the partition of each in the table of data.

use access::Along;
use key_schema::attributes::{HOME, ID, LEVEL, LEVELS, NAME, RESOURCE, SCORER, USER_ID};
use key_schema::{Key, Name, rows};
use mlflow_api::auth::{EVERYTHING, GrantType, Level, Role, RolePermission, UserPermission};
use mlflow_api::{Error, ErrorCode, ExperimentId, Result, UserName};
use permissions::{Account, Kept, KeptGrant, granted_key, scorer_of, unknown_key};
use sha2::{Digest, Sha256};
use table::{Condition, Failure, Item, Map, Plan, Query, Reason, Refusal, Update, Write, map, number, text};

use super::Store;

/// The workspace of everything, as long as there is one.
const WORKSPACE: &str = "default";
/// What is granted to a user himself is answered as a role of his own, which has his id and this.
const OWN_ROLE: u32 = 1 << 31;

/// One thing that a user is granted himself.
struct Own {
    kind: GrantType,
    pattern: String,
    level: Level,
}

impl Store {
    /// The resource that a pattern names, and what tells it from others of its name. One request, and none for all of a type.
    pub(super) async fn find_resource(
        &self,
        along: &Along,
        kind: GrantType,
        pattern: &str,
    ) -> Result<Option<(Kept, String)>> {
        if pattern == EVERYTHING {
            return Ok(None);
        }
        let model = || rows::RegisteredModel::key(&Name::from(pattern));
        let scorer = scorer_of(pattern);
        let key = match kind {
            GrantType::Experiment => ExperimentId::parse(pattern).ok().map(|id| rows::Experiment::key(&id)),
            GrantType::RegisteredModel | GrantType::Prompt => Some(model()),
            GrantType::Scorer => scorer.as_ref().map(|(id, name)| rows::Scorer::key(id, &Name::from(name.as_str()))),
            _ => None,
        };
        let Some(key) = key else { return Ok(None) };
        let Some(item) = self.data.get(&key).await? else { return Ok(None) };
        // A name that is cut in its key may be another's.
        let is_named = |name: &str| item.text(NAME) == Some(name);
        let text = |attribute: &str| item.text(attribute).map(str::to_owned);
        Ok(match kind {
            GrantType::Experiment => {
                let id = ExperimentId::parse(pattern)?;
                Some((Kept::Experiment(id), id.to_string()))
            }
            GrantType::Scorer => scorer.filter(|(_, name)| is_named(name)).zip(text(SCORER)).map(|(of, id)| {
                let (experiment, name) = of;
                (Kept::Scorer(experiment, name), id)
            }),
            _ if is_named(pattern) => {
                let home = text(HOME).unwrap_or_else(|| pattern.to_owned());
                let kept = if kind == GrantType::Prompt { Kept::Prompt(home) } else { Kept::RegisteredModel(home) };
                // What whoever shares may share is the model that he was asked about, and no other that has its name now.
                text(ID).filter(|id| along.is_asked_about(pattern, id)).map(|id| (kept, id))
            }
            _ => None,
        })
    }

    /// Grants a user something. Three requests.
    ///
    /// # Errors
    /// `RESOURCE_DOES_NOT_EXIST`, where there is no such user; `RESOURCE_ALREADY_EXISTS`, where he is granted anything for it already.
    pub async fn grant(
        &self,
        along: &Along,
        name: &UserName,
        kind: GrantType,
        pattern: &str,
        level: Level,
    ) -> Result<()> {
        let user_id = self.user_get(name).await?.user.id;
        let taken = || {
            let message = format!(
                "Permission for user={name} on resource_type={}, resource_id={pattern} already exists.",
                kind.name()
            );
            Error::new(ErrorCode::ResourceAlreadyExists, message)
        };
        if pattern == EVERYTHING {
            return self.grant_all(name, user_id, kind, level, taken).await;
        }
        let item = match self.find_resource(along, kind, pattern).await? {
            Some((on, resource)) => KeptGrant { on, user_id, resource, level }.item(name),
            None => Item::new(unknown_key(name, kind, pattern))
                .with(USER_ID, number(user_id))
                .with(NAME, text(pattern))
                .with(LEVEL, text(level.name())),
        };
        let is_other = |attribute: &str| {
            item.0
                .get(attribute)
                .map(|value| Condition::Not(Box::new(Condition::Equals(attribute.into(), value.clone()))))
        };
        // What a user of the same name was granted before, or for another resource of the same name, is gone.
        let others = [is_other(USER_ID), is_other(RESOURCE)].into_iter().flatten();
        let condition = Condition::Any(std::iter::once(Condition::item_missing()).chain(others).collect());
        if self.once(Write::Put(item, condition)).await? { Ok(()) } else { Err(taken()) }
    }

    /// Makes a write once, although its answer may be lost: as a transaction. Whether its condition held.
    async fn once(&self, write: Write) -> Result<bool> {
        match self.data.transact(&[write]).await {
            Ok(()) => Ok(true),
            Err(Failure::Cancelled(reasons)) if matches!(reasons.first(), Some(Reason::Refused(_))) => Ok(false),
            Err(failure) => Err(failure.into()),
        }
    }

    async fn grant_all(
        &self,
        name: &UserName,
        user_id: u32,
        kind: GrantType,
        level: Level,
        taken: impl Fn() -> Error,
    ) -> Result<()> {
        let key = rows::TypePermissions::key(name);
        self.data
            .change("what a user is granted", async |_: Refusal| {
                let item = self.data.get(&key).await?;
                let own = item.as_ref().filter(|item| item.number(USER_ID) == Some(i64::from(user_id)));
                let Some(own) = own else {
                    let levels = Map::from([(kind.name().to_owned(), text(level.name()))]);
                    let new = Item::new(key.clone()).with(USER_ID, number(user_id)).with(LEVELS, map(levels));
                    let before = item.as_ref().and_then(|item| item.0.get(USER_ID)).cloned();
                    let condition = match before {
                        Some(before) => Condition::Equals(USER_ID.into(), before),
                        None => Condition::item_missing(),
                    };
                    return Ok(Plan::Write(vec![Write::Put(new, condition)], ()));
                };
                if own.map(LEVELS).is_some_and(|levels| levels.contains_key(kind.name())) {
                    return Err(taken());
                }
                let update = Update::new(key.clone())
                    .set((LEVELS, kind.name()), text(level.name()))
                    .only_if(Condition::Equals(USER_ID.into(), number(user_id)))
                    .only_if(Condition::Missing((LEVELS, kind.name()).into()));
                Ok::<_, Error>(Plan::Write(vec![Write::Update(update)], ()))
            })
            .await
    }

    /// Takes back what a user was granted. Four requests at most.
    ///
    /// # Errors
    /// `RESOURCE_DOES_NOT_EXIST`, where there is no such user, or nothing is granted.
    pub async fn revoke(&self, along: &Along, name: &UserName, kind: GrantType, pattern: &str) -> Result<()> {
        let user_id = self.user_get(name).await?.user.id;
        let is_his = Condition::Equals(USER_ID.into(), number(user_id));
        let is_revoked = if pattern == EVERYTHING {
            let update = Update::new(rows::TypePermissions::key(name)).remove((LEVELS, kind.name()));
            let is_granted = Condition::Exists((LEVELS, kind.name()).into());
            self.once(Write::Update(update.only_if(is_his).only_if(is_granted))).await?
        } else {
            let unknown = Write::Delete(unknown_key(name, kind, pattern), is_his.clone());
            let known = self.find_resource(along, kind, pattern).await?.map(|(on, resource)| {
                let is_for_it = Condition::Equals(RESOURCE.into(), text(resource));
                Write::Delete(granted_key(name, &on), is_his.and(is_for_it))
            });
            let is_revoked = match known {
                Some(known) => self.once(known).await?,
                None => false,
            };
            // It may have been granted before there was such a resource.
            is_revoked || self.once(unknown).await?
        };
        if is_revoked {
            return Ok(());
        }
        Err(Error::not_found(format!(
            "Permission for user={name} on resource_type={}, resource_id={pattern} not found.",
            kind.name()
        )))
    }

    /// What a user is granted himself, in the order of types and resources, without what counts no longer.
    async fn own(&self, account: &Account) -> Result<Vec<Own>> {
        let name = &account.user.name;
        let items = self.data.query(Query::of(rows::TypePermissions::partition(name))).await?;
        let items: Vec<_> =
            items.into_iter().filter(|item| item.number(USER_ID) == Some(i64::from(account.user.id))).collect();
        let kept: Vec<_> = items.iter().filter_map(KeptGrant::of).collect();
        let names = self.basic.names_of(&kept).await?;
        let current = kept
            .iter()
            .zip(names)
            .filter_map(|(grant, pattern)| Some(Own { kind: grant.on.kind(), pattern: pattern?, level: grant.level }));
        let mut own: Vec<_> = current.collect();
        for item in &items {
            let levels = permissions::type_levels(item, account.user.id).into_iter();
            own.extend(levels.map(|(kind, level)| Own { kind, pattern: EVERYTHING.to_owned(), level }));
            let key: Option<Key> = item.key();
            if let Some(row) = key.as_ref().and_then(rows::OtherPermission::parse)
                && let (Some(kind), Some(level)) =
                    (GrantType::from_name(&row.kind.0), item.text(LEVEL).and_then(Level::from_name))
            {
                let pattern = item.text(NAME).unwrap_or_default().to_owned();
                own.push(Own { kind, pattern, level });
            }
        }
        own.sort_by(|one, other| (one.kind.name(), &one.pattern).cmp(&(other.kind.name(), &other.pattern)));
        Ok(own)
    }

    /// The roles of a user, and what he is granted himself as one more.
    ///
    /// # Errors
    /// The tables cannot be read.
    pub async fn roles_of(&self, account: &Account) -> Result<Vec<Role>> {
        let roles = self.roles_with(account.user.roles.iter().copied()).await?;
        let mut roles: Vec<_> = roles.iter().map(super::StoredRole::answer).collect();
        let own = self.own(account).await?;
        if !own.is_empty() {
            let id = OWN_ROLE + account.user.id;
            let permissions = own.into_iter().map(|own| RolePermission {
                id: own_id(account.user.id, &own),
                role_id: id,
                resource_type: own.kind.name(),
                resource_pattern: own.pattern,
                permission: own.level.name(),
            });
            roles.push(Role {
                id,
                name: format!("__user_{}__", account.user.id),
                workspace: WORKSPACE.to_owned(),
                description: None,
                permissions: permissions.collect(),
            });
        }
        Ok(roles)
    }

    /// Everything that a user is granted, by roles and himself.
    ///
    /// # Errors
    /// The tables cannot be read.
    pub async fn permissions_of(&self, account: &Account) -> Result<Vec<UserPermission>> {
        let of_role = |role: Role| {
            let (role_id, role_name, workspace) = (role.id, role.name, role.workspace);
            role.permissions.into_iter().map(move |permission| UserPermission {
                role_id,
                role_name: role_name.clone(),
                workspace: workspace.clone(),
                resource_type: permission.resource_type,
                resource_pattern: permission.resource_pattern,
                permission: permission.permission,
            })
        };
        Ok(self.roles_of(account).await?.into_iter().flat_map(of_role).collect())
    }

    /// How much a user may do with a resource.
    ///
    /// # Errors
    /// `RESOURCE_DOES_NOT_EXIST`, where there is no such user.
    pub async fn effective(&self, name: &UserName, kind: GrantType, pattern: &str) -> Result<Level> {
        let found = self.user_get(name).await?;
        let grants = self.basic.grants_of(&found.user).await?;
        Ok(grants.effective(kind, pattern, self.basic.default_level()))
    }
}

/// The id of what a user is granted himself, of 52 bits, which a client's JSON can hold: it is made of what it is the id of, so that who
/// creates something needs no counter.
fn own_id(user: u32, own: &Own) -> u64 {
    let hash = Sha256::digest(format!("{user} {} {}", own.kind.name(), own.pattern));
    hash.first_chunk().map_or(0, |first| u64::from_be_bytes(*first) >> 12)
}
