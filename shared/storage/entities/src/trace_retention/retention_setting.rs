//! The trace retention setting, and the experiments that may override it. There is no setting
//! unless an administrator creates it.
//!
//! An experiment overrides the setting with its tag, and is listed in the setting before it gets
//! the tag. A process that has read the setting therefore needs no request for the retention of
//! experiments that are not listed.

use std::collections::BTreeSet;

use crate::attributes::{KEPT_FOR, OWN};
use key_schema::{Key, rows};
use mlflow_api::{Error, ExperimentId, Result, TRACE_RETENTION_TAG, TraceRetention};
use table::{Failure, Item, Table, Update, bytes_set, text};

const SETTING_NAME: &str = "trace_ttl_policy";
/// Maximum number of experiments that override the setting. Every process reads their IDs once per
/// minute.
const MAX_EXPERIMENTS: usize = 1_000;

/// The trace retention setting of a table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TraceRetentionSetting {
    /// Retention of traces whose experiment does not override it. `None` if no retention has been
    /// set; such traces are kept forever.
    pub kept: Option<TraceRetention>,
    /// Experiments whose tag may override the setting.
    pub own: BTreeSet<ExperimentId>,
}

fn key() -> Key {
    rows::Config::key(&SETTING_NAME.into())
}

impl TraceRetentionSetting {
    /// Reads the setting. Takes one request.
    ///
    /// # Errors
    /// Returns [`Failure::Unreadable`] if the setting cannot be read, and other failures of the
    /// table.
    pub async fn read(table: &Table) -> table::Result<Self> {
        Self::among(table.get(&key()).await?.as_slice())
    }

    /// Reads this setting from the rows of all settings of a table.
    pub(crate) fn among(settings: &[Item]) -> table::Result<Self> {
        let item = settings.iter().find(|item| item.key() == Some(key()));
        let read = item.map_or_else(|| Some(Self::default()), Self::of);
        read.ok_or_else(|| Failure::Unreadable(format!("{KEPT_FOR} or {OWN} of the setting {SETTING_NAME}")))
    }

    /// Returns the text of the retention as the administrator entered it. Takes one request.
    ///
    /// # Errors
    /// Returns failures of the table.
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

    /// Sets the retention of traces whose experiment does not override it, or removes it. Takes one
    /// request.
    ///
    /// # Errors
    /// Returns `INVALID_PARAMETER_VALUE` if the text is not a valid retention, and failures of the
    /// table.
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

    /// Lists an experiment in the setting. Must be called before the experiment gets its own tag.
    /// Takes one request, or two if the experiment is not listed yet.
    ///
    /// # Errors
    /// Returns `INVALID_PARAMETER_VALUE` if too many experiments are listed, and failures of the
    /// table.
    pub async fn announce(table: &Table, experiment: ExperimentId) -> Result<()> {
        let known = Self::read(table).await?.own;
        if known.contains(&experiment) {
            return Ok(());
        }
        if known.len() >= MAX_EXPERIMENTS {
            return Err(Error::invalid(format!(
                "At most {MAX_EXPERIMENTS} experiments may have the tag '{TRACE_RETENTION_TAG}'. The server's setting applies to all others."
            )));
        }
        let named = bytes_set([experiment.to_string().into_bytes()]);
        Ok(table.apply(&Update::upsert(key()).add(OWN, named)).await?)
    }

    /// Removes an experiment that is being permanently deleted from the list in the setting. No
    /// other experiment can be removed safely, because it may be about to get the tag. Takes one
    /// request.
    ///
    /// # Errors
    /// Returns failures of the table.
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
        let expected =
            TraceRetentionSetting { kept: Some(TraceRetention::parse("30d").unwrap()), own: BTreeSet::from([id]) };
        assert_eq!(TraceRetentionSetting::of(&own), Some(expected));
        assert_eq!(TraceRetentionSetting::of(&item()), Some(TraceRetentionSetting::default()));
        for item in [
            item().with(KEPT_FOR, text("soon")),
            item().with(OWN, bytes_set([b"x".to_vec()])),
            item().with(OWN, text("17")),
        ] {
            assert_eq!(TraceRetentionSetting::of(&item), None);
        }
    }
}
