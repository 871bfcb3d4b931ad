//! Daily usage and quotas of workspaces.

use std::collections::BTreeMap;

use crate::now_ms;
use crate::quota::{QuotaKind, day_of};
use key_schema::attributes::{EXHAUSTED, HAS_QUOTA, QUOTAS};
use key_schema::{Ascending, rows};
use mlflow_api::{Error, Result, Workspace};
use table::{Failure, Item, Map, Query, Update, Write, map, number};

use crate::workspaces::document::key_of;
use crate::workspaces::store::{Workspaces, listed_key};

/// The usage of a workspace on one day (UTC).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DailyUsage {
    /// Number of days since 1970-01-01.
    pub day: i64,
    /// The amount of each counted quantity.
    pub counted: BTreeMap<QuotaKind, i64>,
}

/// Maximum amount per day of each quantity. Quantities that are not included are unlimited.
pub type WorkspaceQuota = BTreeMap<QuotaKind, i64>;

fn numbers(map: Option<&Map>) -> BTreeMap<QuotaKind, i64> {
    let read =
        |(name, value): (&String, &table::Value)| Some((QuotaKind::from_name(name)?, value.as_n().ok()?.parse().ok()?));
    map.into_iter().flatten().filter_map(read).collect()
}

impl Workspaces {
    /// Returns the usage of all days since `from`. Takes one request.
    ///
    /// # Errors
    /// The table cannot be read.
    pub async fn days(&self, workspace: &Workspace, from: i64) -> Result<Vec<DailyUsage>> {
        let days = self.table.query(Query::of(rows::WorkspaceDay::all(&workspace.as_str().into()))).await?;
        let day = |item: &Item| {
            let row = rows::WorkspaceDay::parse(&item.key()?)?;
            Some(DailyUsage { day: row.day.0, counted: numbers(Some(&item.0)) })
        };
        let mut days = crate::read_all(&days, "a day of a workspace", day)?;
        days.retain(|day| day.day >= from);
        Ok(days)
    }

    /// Adds to the counters of a day. Takes one request.
    ///
    /// # Errors
    /// The table cannot be written.
    pub async fn add(&self, workspace: &Workspace, day: i64, counted: &BTreeMap<QuotaKind, i64>) -> Result<()> {
        let update = Update::upsert(rows::WorkspaceDay::key(&workspace.as_str().into(), &Ascending(day)));
        let update = counted.iter().fold(update, |update, (what, much)| update.add(what.name(), number(*much)));
        Ok(self.table.apply(&update).await?)
    }

    /// Returns the quota of a workspace. Takes one request.
    ///
    /// # Errors
    /// The table cannot be read.
    pub async fn quota(&self, workspace: &Workspace) -> Result<WorkspaceQuota> {
        let item = self.table.get(&key_of(workspace)).await?;
        Ok(numbers(item.as_ref().and_then(|item| item.map(QUOTAS))))
    }

    /// Sets the quota of a workspace. Takes one request, and those of
    /// [`hold_to_quota`](Self::hold_to_quota).
    ///
    /// # Errors
    /// `RESOURCE_DOES_NOT_EXIST`; `INVALID_PARAMETER_VALUE` for the default workspace, which has no
    /// quota.
    pub async fn set_quota(&self, workspace: &Workspace, quota: &WorkspaceQuota) -> Result<()> {
        if *workspace == Workspace::default() {
            return Err(Error::invalid("The default workspace cannot have a quota."));
        }
        let quotas: Map = quota.iter().map(|(what, much)| (what.name().to_owned(), number(*much))).collect();
        let has_quota = u8::from(!quotas.is_empty());
        let of_itself = Update::new(key_of(workspace)).set(QUOTAS, map(quotas)).remove(EXHAUSTED);
        let listed = Update::new(listed_key(workspace)).set(HAS_QUOTA, number(has_quota));
        match self.table.transact(&[Write::Update(of_itself), Write::Update(listed)]).await {
            Ok(()) => self.hold_to_quota(workspace).await,
            Err(Failure::Cancelled(_)) => Err(workspace.not_found()),
            Err(failure) => Err(failure.into()),
        }
    }

    /// Enforces the quotas of all workspaces. Takes one request per MB of names, and two or three
    /// for each workspace with a quota.
    ///
    /// # Errors
    /// The table cannot be read or written. Reported after all workspaces have been processed.
    pub async fn hold_to_quotas(&self) -> Result<()> {
        let mut outcome = Ok(());
        for row in self.table.query(Query::of(rows::ListedWorkspace::all())).await? {
            if row.get(HAS_QUOTA) == Some(1)
                && let Some(row) = row.key().and_then(|key| rows::ListedWorkspace::parse(&key))
                && let Ok(workspace) = Workspace::parse(&row.workspace.0)
            {
                outcome = outcome.and(self.hold_to_quota(&workspace).await);
            }
        }
        outcome
    }

    /// Records which quotas of a workspace are exhausted today. The server rejects requests
    /// accordingly. Takes one request if the workspace has no quota; otherwise two, or three if
    /// something has to be written.
    ///
    /// # Errors
    /// The table cannot be read or written.
    pub async fn hold_to_quota(&self, workspace: &Workspace) -> Result<()> {
        let Some(item) = self.table.get(&key_of(workspace)).await? else { return Ok(()) };
        let quota = numbers(item.map(QUOTAS));
        if quota.is_empty() {
            return Ok(());
        }
        let today = day_of(now_ms());
        let day = self.table.get(&rows::WorkspaceDay::key(&workspace.as_str().into(), &Ascending(today))).await?;
        let brought = numbers(day.as_ref().map(|day| &day.0));
        let is_used_up = |(what, most): &(&QuotaKind, &i64)| brought.get(what).copied().unwrap_or_default() >= **most;
        let used_up: BTreeMap<_, _> = quota.iter().filter(is_used_up).map(|(what, _)| (*what, today)).collect();
        let said: BTreeMap<_, _> = numbers(item.map(EXHAUSTED)).into_iter().filter(|(_, day)| *day == today).collect();
        if said == used_up {
            return Ok(());
        }
        let exhausted = used_up.iter().map(|(what, day)| (what.name().to_owned(), number(*day))).collect();
        let update = Update::new(key_of(workspace)).set(EXHAUSTED, map(exhausted));
        match self.table.apply(&update).await {
            Ok(()) | Err(Failure::Refused { .. }) => Ok(()),
            Err(failure) => Err(failure.into()),
        }
    }
}
