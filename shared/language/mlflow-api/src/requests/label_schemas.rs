//! Requests about label schemas.

use crate::label_schemas::{LabelInput, LabelSchemaType};
use crate::messages;
use crate::{Error, Result};

messages! {
    /// A choice between two labels.
    PassFailInput {
        positive_label: String,
        negative_label: String,
    }
    /// A choice of options.
    CategoricalInput {
        options: Vec<String>,
        multi_select: bool,
    }
    /// A number.
    NumericInput {
        min_value: Option<f64>,
        max_value: Option<f64>,
    }
    /// A text.
    TextInput {
        max_length: Option<i64>,
    }
    /// An input, of which a request sets exactly one field.
    LabelSchemaInput {
        pass_fail: Option<PassFailInput>,
        categorical: Option<CategoricalInput>,
        numeric: Option<NumericInput>,
        text: Option<TextInput>,
    } => one_of
    /// The request message of `label-schemas/create`.
    CreateLabelSchema {
        experiment_id: String [Required, Text],
        name: String [Required, Text],
        r#type: Option<LabelSchemaType>,
        input: Option<LabelSchemaInput>,
        instruction: Option<String>,
        enable_comment: bool,
    }
    /// The request message of `label-schemas/get` and `delete`.
    OneLabelSchema {
        schema_id: String [Required, Text],
    }
    /// The request message of `label-schemas/get-by-name`.
    GetLabelSchemaByName {
        experiment_id: String [Required, Text],
        name: String [Required, Text],
    }
    /// The request message of `label-schemas/list`.
    ListLabelSchemas {
        experiment_id: String [Required, Text],
        max_results: Option<i32> [Integer, Custom(super::review_queues::is_page_size)],
        page_token: String,
    }
    /// The request message of `label-schemas/update`.
    UpdateLabelSchema {
        schema_id: String [Required, Text],
        name: Option<String>,
        instruction: Option<String>,
        enable_comment: Option<bool>,
        input: Option<LabelSchemaInput>,
    }
}

impl LabelSchemaInput {
    /// Returns the input that a request has set (`_input_from_proto`).
    ///
    /// # Errors
    /// Fails with `INVALID_PARAMETER_VALUE` if no field is set.
    pub fn sent(input: Option<Self>) -> Result<LabelInput> {
        let input = input.and_then(|sent| {
            let pass_fail = sent.pass_fail.map(|input| LabelInput::PassFail {
                positive_label: input.positive_label,
                negative_label: input.negative_label,
            });
            let categorical = sent
                .categorical
                .map(|input| LabelInput::Categorical { options: input.options, multi_select: input.multi_select });
            let numeric = sent
                .numeric
                .map(|input| LabelInput::Numeric { min_value: input.min_value, max_value: input.max_value });
            let text = sent.text.map(|input| LabelInput::Text { max_length: input.max_length });
            pass_fail.or(categorical).or(numeric).or(text)
        });
        input.ok_or_else(|| {
            Error::invalid(
                "Label schema `input` must have exactly one of `pass_fail`, `categorical`, `numeric`, or `text` set; \
                 got an empty oneof.",
            )
        })
    }
}
