//! Messages about the inputs of runs, which are datasets and logged models (`service.proto`).

use serde::Serialize;

use crate::fields::{FieldValue, Scalar};
use crate::key_value::KeyValue;
use crate::limits;
use crate::message::{Content, Kind};
use crate::messages;
use crate::{Error, Result};

/// The tag of a dataset input that contains the use of the dataset, such as training or evaluation.
pub const CONTEXT_TAG: &str = "mlflow.data.context";

/// Maximum length of the schema of a dataset, in characters.
const MAX_SCHEMA_LENGTH: usize = 1_048_575;
/// Maximum length of the source of a dataset, in characters.
const MAX_SOURCE_LENGTH: usize = 65_535;
/// Maximum length of the profile of a dataset, in characters.
const MAX_PROFILE_LENGTH: usize = 16_777_215;
/// Maximum length of the key of an input's tag, in characters.
const MAX_TAG_KEY_LENGTH: usize = 255;
/// Maximum length of the value of an input's tag, in characters.
const MAX_TAG_VALUE_LENGTH: usize = 500;

messages! {
    /// A dataset, which is identified within its experiment by its name and digest.
    #[derive(Default, Eq, Serialize)]
    Dataset {
        /// The name.
        name: String,
        /// The digest of the contents, which is computed by the client.
        digest: String,
        /// The kind of the source.
        source_type: String,
        /// The source, as JSON.
        source: String,
        /// The schema, as JSON. Omitted if empty.
        #[serde(skip_serializing_if = "String::is_empty")]
        schema: String,
        /// The profile, as JSON. Omitted if empty.
        #[serde(skip_serializing_if = "String::is_empty")]
        profile: String,
    }
}

messages! {
    /// A dataset that a run read.
    #[derive(Default, Eq, Serialize)]
    DatasetInput {
        /// The tags of this use of the dataset, by key.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        tags: Vec<KeyValue>,
        /// The dataset.
        dataset: Dataset,
    }
}

/// An input without a dataset is parsed as an input of a dataset with an empty name.
impl FieldValue for Dataset {
    const KIND: Kind = <Self as Scalar>::KIND;

    fn of(content: Option<Content>) -> Result<Self> {
        content.map_or_else(|| Ok(Self::default()), <Self as Scalar>::of)
    }
}

impl DatasetInput {
    /// Returns the use of the dataset, if it is among the tags.
    #[must_use]
    pub fn context(&self) -> Option<&str> {
        self.tags.iter().find(|tag| tag.key == CONTEXT_TAG).map(|tag| tag.value.as_str())
    }

    /// Checks the lengths of all parts (`_validate_dataset_inputs`).
    pub fn check(&self) -> Result<()> {
        let Dataset { name, digest, source, schema, profile, .. } = &self.dataset;
        let parts = [
            ("name", limits::MAX_DATASET_NAME_LENGTH, name),
            ("digest", limits::MAX_DATASET_DIGEST_LENGTH, digest),
            ("source", MAX_SOURCE_LENGTH, source),
            ("schema", MAX_SCHEMA_LENGTH, schema),
            ("profile", MAX_PROFILE_LENGTH, profile),
        ];
        let of_tags = self
            .tags
            .iter()
            .flat_map(|tag| [("key", MAX_TAG_KEY_LENGTH, &tag.key), ("value", MAX_TAG_VALUE_LENGTH, &tag.value)]);
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
        /// The id of the logged model.
        model_id: String,
    }
}

/// The inputs of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct RunInputs {
    /// The datasets.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub dataset_inputs: Vec<DatasetInput>,
    /// The logged models.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub model_inputs: Vec<ModelInput>,
}

/// A dataset of an experiment, and one of its uses.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct DatasetSummary {
    /// The id of the experiment.
    pub experiment_id: String,
    /// The name of the dataset.
    pub name: String,
    /// The digest of the dataset.
    pub digest: String,
    /// The use of the dataset. Omitted if the run did not specify it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context: Option<String>,
}

/// The response of `experiments/search-datasets`.
#[derive(Serialize)]
pub struct DatasetSummariesResponse {
    /// The datasets.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub dataset_summaries: Vec<DatasetSummary>,
}
