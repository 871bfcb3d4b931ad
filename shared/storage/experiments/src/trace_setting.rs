//! The setting of how long traces are kept, and the experiments that may depart from it. There is
//! none unless somebody sets it.
//!
//! An experiment departs from it by its tag. The setting names the experiment before it gets the
//! tag. So a process with the setting knows how long all other experiments keep their traces,
//! without a request.

use std::collections::BTreeSet;

use entities::attributes::{KEPT_FOR, OWN};
use key_schema::{Key, rows};
use mlflow_api::{Error, ExperimentId, Result, TRACE_RETENTION_TAG, TraceRetention};
use table::{Failure, Item, Table, Update, bytes_set, text};

const SETTING: &str = "trace_ttl_policy";
/// Experiments with a policy of their own at most: every process reads their ids once a minute.
const MOST: usize = 1_000;

/// The setting of a table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TraceSetting {
    /// How long traces are kept whose experiment does not say otherwise; `None` where nobody has said so: for ever.
    pub kept: Option<TraceRetention>,
    /// Experiments whose tag may say otherwise.
    pub own: BTreeSet<ExperimentId>,
}

fn key() -> Key {
    rows::Config::key(&SETTING.into())
}

impl TraceSetting {
    /// Reads it. One request.
    ///
    /// # Errors
    /// [`Failure::Unreadable`] if it cannot be read, and others of the table.
    pub async fn read(table: &Table) -> table::Result<Self> {
        Self::among(table.get(&key()).await?.as_slice())
    }

    /// The same from the settings of the table.
    pub(crate) fn among(settings: &[Item]) -> table::Result<Self> {
        let item = settings.iter().find(|item| item.key() == Some(key()));
        let read = item.map_or_else(|| Some(Self::default()), Self::of);
        read.ok_or_else(|| Failure::Unreadable(format!("{KEPT_FOR} or {OWN} of the setting {SETTING}")))
    }

    /// How long traces are kept, as it was written. One request.
    ///
    /// # Errors
    /// Those of the table.
    pub async fn text(table: &Table) -> table::Result<Option<String>> {
        Ok(table.get(&key()).await?.and_then(|item| item.get(KEPT_FOR).map(str::to_owned)))
    }

    fn of(item: &Item) -> Option<Self> {
        let kept = match item.value(KEPT_FOR) {
            None => None,
            Some(kept) => Some(TraceRetention::parse(kept.as_s().ok()?).ok()?),
        };
        let own = match item.value(OWN) {
            None => BTreeSet::new(),
            Some(own) => own.as_bs().ok()?.iter().map(|id| read_id(id.as_ref())).collect::<Option<_>>()?,
        };
        Some(Self { kept, own })
    }

    /// Sets for how long traces are kept whose experiment does not say otherwise, or takes that back. One request.
    ///
    /// # Errors
    /// `INVALID_PARAMETER_VALUE` for a text that says no time, and those of the table.
    pub async fn write(table: &Table, kept_for: Option<&str>) -> Result<()> {
        let update = Update::upsert(key());
        let update = match kept_for {
            Some(kept_for) => {
                TraceRetention::parse(kept_for)?;
                update.set(KEPT_FOR, text(kept_for.trim()))
            }
            None => update.remove(KEPT_FOR),
        };
        Ok(table.apply(&update).await?)
    }

    /// Says that an experiment may have a policy of its own, before it gets such a tag. One request, two if it has not had one.
    ///
    /// # Errors
    /// `INVALID_PARAMETER_VALUE` where too many have one, and those of the table.
    pub async fn announce(table: &Table, experiment: ExperimentId) -> Result<()> {
        let known = Self::read(table).await?.own;
        if known.contains(&experiment) {
            return Ok(());
        }
        if known.len() >= MOST {
            return Err(Error::invalid(format!(
                "At most {MOST} experiments may have the tag '{TRACE_RETENTION_TAG}'. The setting of the server holds for all others."
            )));
        }
        let named = bytes_set([experiment.to_string().into_bytes()]);
        Ok(table.apply(&Update::upsert(key()).add(OWN, named)).await?)
    }

    /// Forgets an experiment that is being removed for good. Of others nobody knows whether they are about to get the tag. One request.
    ///
    /// # Errors
    /// Those of the table.
    pub(crate) async fn forget(table: &Table, experiment: ExperimentId) -> table::Result<()> {
        let named = bytes_set([experiment.to_string().into_bytes()]);
        table.apply(&Update::upsert(key()).delete(OWN, named)).await
    }
}

fn read_id(id: &[u8]) -> Option<ExperimentId> {
    std::str::from_utf8(id).ok()?.parse().ok().and_then(ExperimentId::from_number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_read_is_no_setting() {
        let item = || Item::new(key());
        let id = ExperimentId::parse("17").unwrap();
        let own = item().with(OWN, bytes_set([b"17".to_vec()])).with(KEPT_FOR, text("30d"));
        let expected = TraceSetting { kept: Some(TraceRetention::parse("30d").unwrap()), own: BTreeSet::from([id]) };
        assert_eq!(TraceSetting::of(&own), Some(expected));
        assert_eq!(TraceSetting::of(&item()), Some(TraceSetting::default()));
        for item in [
            item().with(KEPT_FOR, text("soon")),
            item().with(OWN, bytes_set([b"x".to_vec()])),
            item().with(OWN, text("17")),
        ] {
            assert_eq!(TraceSetting::of(&item), None);
        }
    }
}
