//! Messages about the inputs of runs: datasets and logged models (`service.proto`).

use serde::Serialize;

use crate::fields::{FieldValue, Scalar};
use crate::key_value::KeyValue;
use crate::limits;
use crate::message::{Content, Kind};
use crate::messages;
use crate::{Error, Result};

/// The tag of a dataset input with the dataset's use: training, evaluation.
pub const CONTEXT_TAG: &str = "mlflow.data.context";

/// Characters in the schema of a dataset.
const SCHEMA: usize = 1_048_575;
/// Characters in its source.
const SOURCE: usize = 65_535;
/// Characters in its profile.
const PROFILE: usize = 16_777_215;
/// Characters in the key of an input's tag.
const TAG_KEY: usize = 255;
/// Characters in its value.
const TAG_VALUE: usize = 500;

messages! {
    /// A dataset, by its name and digest one of its experiment.
    #[derive(Default, Eq, Serialize)]
    Dataset {
        /// Name.
        name: String,
        /// The client's digest of its content.
        digest: String,
        /// Kind of the source.
        source_type: String,
        /// Where it came from, as JSON.
        source: String,
        /// Its schema, as JSON; left out while empty.
        #[serde(skip_serializing_if = "String::is_empty")]
        schema: String,
        /// Its profile, as JSON; left out while empty.
        #[serde(skip_serializing_if = "String::is_empty")]
        profile: String,
    }
}

messages! {
    /// A dataset that a run read.
    #[derive(Default, Eq, Serialize)]
    DatasetInput {
        /// Tags of this use of it, by key.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        tags: Vec<KeyValue>,
        /// The dataset.
        dataset: Dataset,
    }
}

/// An input without a dataset is of one without a name.
impl FieldValue for Dataset {
    const KIND: Kind = <Self as Scalar>::KIND;

    fn of(content: Option<Content>) -> Result<Self> {
        content.map_or_else(|| Ok(Self::default()), <Self as Scalar>::of)
    }
}

impl DatasetInput {
    /// Its use, if its tags have it.
    #[must_use]
    pub fn context(&self) -> Option<&str> {
        self.tags.iter().find(|tag| tag.key == CONTEXT_TAG).map(|tag| tag.value.as_str())
    }

    /// Checks the lengths of its parts (`_validate_dataset_inputs`).
    pub fn check(&self) -> Result<()> {
        let Dataset { name, digest, source, schema, profile, .. } = &self.dataset;
        let parts = [
            ("name", limits::DATASET_NAME, name),
            ("digest", limits::DATASET_DIGEST, digest),
            ("source", SOURCE, source),
            ("schema", SCHEMA, schema),
            ("profile", PROFILE, profile),
        ];
        let of_tags = self.tags.iter().flat_map(|tag| [("key", TAG_KEY, &tag.key), ("value", TAG_VALUE, &tag.value)]);
        match parts.into_iter().chain(of_tags).find(|(_, limit, text)| text.chars().count() > *limit) {
            None => Ok(()),
            Some((part, limit, _)) => {
                Err(Error::invalid(format!("'{part}' exceeds the maximum length of {limit} characters")))
            }
        }
    }
}

messages! {
    /// A logged model that a run read.
    #[derive(Eq, Serialize)]
    ModelInput {
        /// Id of the logged model.
        model_id: String,
    }
}

/// The inputs of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct RunInputs {
    /// Datasets.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub dataset_inputs: Vec<DatasetInput>,
    /// Logged models.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub model_inputs: Vec<ModelInput>,
}

/// A dataset of an experiment and one of the things it was used for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct DatasetSummary {
    /// The experiment.
    pub experiment_id: String,
    /// Name of the dataset.
    pub name: String,
    /// Its digest.
    pub digest: String,
    /// Its use; left out where a run did not give it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context: Option<String>,
}

/// `experiments/search-datasets`
#[derive(Serialize)]
pub struct DatasetSummaries {
    /// The datasets.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub dataset_summaries: Vec<DatasetSummary>,
}
