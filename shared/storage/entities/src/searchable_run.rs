//! Runs in the form in which search filters access them.

use mlflow_api::inputs;
use mlflow_api::tracking::{self, KeyValue};
use search::{DatasetInputFields, RunFields, RunNumber, RunText};

/// A run, in the form in which search filters access it.
#[derive(Clone, Copy, Debug)]
pub struct SearchableRun<'a>(pub &'a tracking::Run);

impl RunFields for SearchableRun<'_> {
    fn text(&self, attribute: RunText) -> Option<&str> {
        let info = &self.0.info;
        Some(match attribute {
            RunText::RunId => &info.run_id,
            RunText::RunName => &info.run_name,
            RunText::Status => info.status.name(),
            RunText::UserId => &info.user_id,
            RunText::ArtifactUri => &info.artifact_uri,
        })
    }

    fn number(&self, attribute: RunNumber) -> Option<i64> {
        match attribute {
            RunNumber::StartTime => Some(self.0.info.start_time),
            RunNumber::EndTime => self.0.info.end_time,
        }
    }

    fn metric(&self, key: &str) -> Option<f64> {
        let metrics = &self.0.data.metrics;
        let position = metrics.binary_search_by(|metric| metric.key.as_str().cmp(key)).ok()?;
        Some(metrics[position].value)
    }

    fn param(&self, key: &str) -> Option<&str> {
        find(&self.0.data.params, key)
    }

    fn tag(&self, key: &str) -> Option<&str> {
        find(&self.0.data.tags, key)
    }

    fn datasets(&self) -> impl Iterator<Item = DatasetInputFields<'_>> {
        self.0.inputs.dataset_inputs.iter().map(searched_dataset)
    }
}

/// Returns a run's dataset in the form in which search filters access it.
#[must_use]
pub fn searched_dataset(input: &inputs::DatasetInput) -> DatasetInputFields<'_> {
    DatasetInputFields { name: &input.dataset.name, digest: &input.dataset.digest, context: input.context() }
}

/// Returns the value of a key in entries that are sorted by key.
#[must_use]
pub fn find<'a>(entries: &'a [KeyValue], key: &str) -> Option<&'a str> {
    let position = entries.binary_search_by(|entry| entry.key.as_str().cmp(key)).ok()?;
    Some(&entries[position].value)
}
