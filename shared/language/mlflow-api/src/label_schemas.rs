//! Label schemas: the questions that reviewers answer about traces (`label_schemas.proto`, and
//! `validation.py` in MLflow's `genai/label_schemas`).

use serde::{Deserialize, Serialize};

use crate::{Error, ExperimentId, LabelSchemaId, Result, python};

/// Maximum length of a label schema's name, in characters.
const MAX_NAME_LENGTH: usize = 250;
/// Maximum length of a label schema's instruction, in characters.
const MAX_INSTRUCTION_LENGTH: usize = 1_000;
/// Maximum length of a label or an option, in characters.
const MAX_OPTION_LENGTH: usize = 64;
/// Maximum number of options to choose from.
const MAX_OPTIONS: usize = 10;

/// Name of the label schema that every experiment has.
pub const DEFAULT_NAME: &str = "Feedback";
/// Instruction of the label schema that every experiment has.
pub const DEFAULT_INSTRUCTION: &str = "Share any feedback on this trace.";

/// The kind of assessment that answers become.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum LabelSchemaType {
    /// Feedback.
    Feedback,
    /// An expectation.
    Expectation,
}

crate::enum_field!(LabelSchemaType {
    "FEEDBACK" = 1 => Self::Feedback,
    "EXPECTATION" = 2 => Self::Expectation,
});

impl LabelSchemaType {
    /// Returns the type that a request has set.
    ///
    /// # Errors
    /// Fails with `INVALID_PARAMETER_VALUE` if the request has not set any.
    pub fn sent(sent: Option<Self>) -> Result<Self> {
        sent.ok_or_else(|| {
            Error::invalid("Label schema `type` must be one of FEEDBACK or EXPECTATION; got proto enum value 0.")
        })
    }
}

/// How reviewers enter an answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LabelInput {
    /// A choice between two labels.
    PassFail {
        /// The label of the positive answer.
        positive_label: String,
        /// The label of the negative answer.
        negative_label: String,
    },
    /// A choice of one or several options.
    Categorical {
        /// The options.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        options: Vec<String>,
        /// Whether several options can be chosen.
        multi_select: bool,
    },
    /// A number.
    Numeric {
        /// Minimum value.
        #[serde(default, skip_serializing_if = "Option::is_none", with = "double")]
        min_value: Option<f64>,
        /// Maximum value.
        #[serde(default, skip_serializing_if = "Option::is_none", with = "double")]
        max_value: Option<f64>,
    },
    /// A text.
    Text {
        /// Maximum length, in characters.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        max_length: Option<i64>,
    },
}

/// Doubles as in protobuf's JSON format, in which numbers that are not finite are texts.
mod double {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use crate::python;

    #[derive(Serialize, Deserialize)]
    #[serde(untagged)]
    enum Double {
        Number(f64),
        Text(String),
    }

    #[expect(clippy::ref_option, reason = "the signature that serde expects")]
    pub(super) fn serialize<S: Serializer>(value: &Option<f64>, serializer: S) -> Result<S::Ok, S::Error> {
        let value = value.map(|value| match value {
            value if value.is_finite() => Double::Number(value),
            value if value.is_nan() => Double::Text("NaN".to_owned()),
            value => Double::Text(if value > 0.0 { "Infinity" } else { "-Infinity" }.to_owned()),
        });
        value.serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<f64>, D::Error> {
        let value = Option::<Double>::deserialize(deserializer)?;
        Ok(value.and_then(|value| match value {
            Double::Number(number) => Some(number),
            Double::Text(text) => python::parse_float(&text),
        }))
    }
}

impl LabelInput {
    /// Returns the name of MLflow's Python class for the variant.
    const fn class(&self) -> &'static str {
        match self {
            Self::PassFail { .. } => "InputPassFail",
            Self::Categorical { .. } => "InputCategorical",
            Self::Numeric { .. } => "InputNumeric",
            Self::Text { .. } => "InputText",
        }
    }

    /// Checks an input (`_validate_input`).
    ///
    /// # Errors
    /// Fails with `INVALID_PARAMETER_VALUE` for an input that MLflow rejects.
    pub fn check(&self) -> Result<()> {
        match self {
            Self::PassFail { positive_label, negative_label } => check_labels(positive_label, negative_label),
            Self::Categorical { options, .. } => check_options(options),
            Self::Numeric { min_value: Some(min), max_value: Some(max) } if min >= max => Err(Error::invalid(format!(
                "`InputNumeric.min_value` must be strictly less than `max_value`; got min={}, max={}.",
                python::float(*min),
                python::float(*max)
            ))),
            Self::Text { max_length: Some(length) } if *length < 1 => {
                Err(Error::invalid(format!("`InputText.max_length` must be at least 1; got {length}.")))
            }
            Self::Numeric { .. } | Self::Text { .. } => Ok(()),
        }
    }

    /// Checks that an input may be replaced by a new one (`_validate_input_immutable`).
    ///
    /// # Errors
    /// Fails with `INVALID_PARAMETER_VALUE` if answers to the old input would not fit the new one.
    pub fn check_replacement(&self, new: &Self) -> Result<()> {
        if self.class() != new.class() {
            return Err(Error::invalid(format!(
                "A label schema's input type cannot be changed after creation (existing: {}, got: {}).",
                self.class(),
                new.class()
            )));
        }
        match (self, new) {
            (Self::Categorical { multi_select: old, .. }, Self::Categorical { multi_select: new, .. })
                if old != new =>
            {
                Err(Error::invalid("`InputCategorical.multi_select` cannot be changed after creation."))
            }
            _ => Ok(()),
        }
    }
}

fn check_labels(positive: &str, negative: &str) -> Result<()> {
    for (field, label) in [("positive_label", positive), ("negative_label", negative)] {
        if label.is_empty() {
            return Err(Error::invalid(format!("`InputPassFail.{field}` must be a non-empty string; got ''.")));
        }
        let length = label.chars().count();
        if length > MAX_OPTION_LENGTH {
            return Err(Error::invalid(format!(
                "`InputPassFail.{field}` must be at most {MAX_OPTION_LENGTH} characters; got {length}."
            )));
        }
    }
    if positive == negative {
        return Err(Error::invalid(format!(
            "`InputPassFail.positive_label` and `negative_label` must be distinct; got {} for both.",
            python::repr(positive)
        )));
    }
    Ok(())
}

fn check_options(options: &[String]) -> Result<()> {
    if options.is_empty() {
        return Err(Error::invalid("`InputCategorical.options` must be a non-empty list; got []."));
    }
    if options.len() > MAX_OPTIONS {
        return Err(Error::invalid(format!(
            "`InputCategorical.options` must have at most {MAX_OPTIONS} entries; got {}.",
            options.len()
        )));
    }
    for (place, option) in options.iter().enumerate() {
        if option.is_empty() {
            return Err(Error::invalid("`InputCategorical.options` entries must be non-empty strings; got ''."));
        }
        let length = option.chars().count();
        if length > MAX_OPTION_LENGTH {
            return Err(Error::invalid(format!(
                "`InputCategorical.options` entries must be at most {MAX_OPTION_LENGTH} characters; got {length} for {}.",
                python::repr(option)
            )));
        }
        if options.iter().take(place).any(|earlier| earlier == option) {
            return Err(Error::invalid(format!(
                "`InputCategorical.options` must be deduplicated; {} appears twice.",
                python::repr(option)
            )));
        }
    }
    Ok(())
}

/// Checks the name of a label schema.
///
/// # Errors
/// Fails with `INVALID_PARAMETER_VALUE` for a name that is empty, too long or reserved.
pub fn check_name(name: &str) -> Result<()> {
    if name.is_empty() {
        return Err(Error::invalid("Label schema `name` must be a non-empty string; got ''."));
    }
    let length = name.chars().count();
    if length > MAX_NAME_LENGTH {
        return Err(Error::invalid(format!(
            "Label schema `name` must be at most {MAX_NAME_LENGTH} characters; got {length}."
        )));
    }
    if name.trim().to_lowercase() == DEFAULT_NAME.to_lowercase() {
        return Err(Error::invalid(format!(
            "`{name}` is reserved for the experiment's default question and cannot be used for another label schema."
        )));
    }
    Ok(())
}

/// Checks the instruction of a label schema.
///
/// # Errors
/// Fails with `INVALID_PARAMETER_VALUE` for an instruction that is too long.
pub fn check_instruction(instruction: &str) -> Result<()> {
    let length = instruction.chars().count();
    if length > MAX_INSTRUCTION_LENGTH {
        return Err(Error::invalid(format!(
            "Label schema `instruction` must be at most {MAX_INSTRUCTION_LENGTH} characters; got {length}."
        )));
    }
    Ok(())
}

/// A label schema.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LabelSchema {
    /// The id.
    pub schema_id: String,
    /// The id of the experiment.
    pub experiment_id: String,
    /// The name.
    pub name: String,
    /// The kind of assessment that answers become.
    #[serde(rename = "type")]
    pub kind: LabelSchemaType,
    /// The instruction for reviewers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instruction: Option<String>,
    /// Whether reviewers can add a comment.
    pub enable_comment: bool,
    /// How reviewers enter an answer.
    pub input: LabelInput,
    /// The creation time, in ms.
    pub created_at: i64,
    /// The time of the last change, in ms.
    pub last_updated_at: i64,
    /// Whether this is the label schema that every experiment has, which cannot be changed.
    pub is_default: bool,
}

impl LabelSchema {
    /// Returns the label schema that every experiment has.
    #[must_use]
    pub fn default_of(experiment: ExperimentId) -> Self {
        let id = LabelSchemaId::default_of(experiment);
        Self {
            schema_id: id.to_string(),
            experiment_id: experiment.to_string(),
            name: DEFAULT_NAME.to_owned(),
            kind: LabelSchemaType::Feedback,
            instruction: Some(DEFAULT_INSTRUCTION.to_owned()),
            enable_comment: false,
            input: LabelInput::Text { max_length: None },
            created_at: id.created(),
            last_updated_at: id.created(),
            is_default: true,
        }
    }
}

/// A response with one label schema.
#[derive(Debug, Serialize)]
pub struct LabelSchemaResponse {
    /// The label schema.
    pub label_schema: LabelSchema,
}

/// The response of `label-schemas/list`.
#[derive(Debug, Serialize)]
pub struct LabelSchemasResponse {
    /// The label schemas, newest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub label_schemas: Vec<LabelSchema>,
    /// The token of the next page, which is empty on the last page.
    pub next_page_token: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inputs_are_stored_as_protobuf_prints_them() {
        for (input, json) in [
            (LabelInput::Text { max_length: None }, r#"{"text":{}}"#),
            (
                LabelInput::Numeric { min_value: Some(1.0), max_value: Some(f64::INFINITY) },
                r#"{"numeric":{"min_value":1.0,"max_value":"Infinity"}}"#,
            ),
            (
                LabelInput::Categorical { options: vec!["a".to_owned()], multi_select: false },
                r#"{"categorical":{"options":["a"],"multi_select":false}}"#,
            ),
        ] {
            assert_eq!(serde_json::to_string(&input).unwrap(), json);
            assert_eq!(serde_json::from_str::<LabelInput>(json).unwrap(), input);
        }
    }

    #[test]
    fn names_and_inputs_are_bounded() {
        assert!(check_name("Correct?").is_ok() && check_name(&"é".repeat(250)).is_ok());
        for name in ["", " feedBack ", &"a".repeat(251)] {
            assert!(check_name(name).is_err(), "{name}");
        }
        assert!(check_instruction(&"a".repeat(1_000)).is_ok() && check_instruction(&"a".repeat(1_001)).is_err());
        let options = |options: &[&str]| LabelInput::Categorical {
            options: options.iter().map(ToString::to_string).collect(),
            multi_select: false,
        };
        let labels = |positive: &str, negative: &str| LabelInput::PassFail {
            positive_label: positive.to_owned(),
            negative_label: negative.to_owned(),
        };
        let ten = ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9"];
        assert!(options(&ten).check().is_ok() && labels("yes", "no").check().is_ok());
        let long = "a".repeat(65);
        for input in [
            options(&[]),
            options(&["a", "a"]),
            options(&["a", ""]),
            options(&[&long]),
            options(&[ten.as_slice(), &["10"]].concat()),
            labels("", "no"),
            labels("no", "no"),
            labels("yes", &long),
            LabelInput::Numeric { min_value: Some(1.0), max_value: Some(1.0) },
            LabelInput::Text { max_length: Some(0) },
        ] {
            assert!(input.check().is_err(), "{input:?}");
        }
    }
}
