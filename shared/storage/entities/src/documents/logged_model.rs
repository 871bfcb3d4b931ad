//! Logged models as documents. Deleted models can be written like active ones, because MLflow
//! checks the stage of a logged model only in searches.

use crate::ModelLocation;
use key_schema::{Key, Name, rows};
use mlflow_api::{Error, ErrorCode, Result};
use table::{Condition, Item};

use crate::documents::{Document, ParamConflict, print_conflicts};

/// A logged model's document.
pub struct LoggedModelDocument<'a> {
    /// Location of the model.
    pub at: &'a ModelLocation,
}

impl Document for LoggedModelDocument<'_> {
    fn key(&self) -> Key {
        self.at.key()
    }

    fn param_row(&self, param: &Name) -> Key {
        rows::LoggedModelParam::key(&self.at.experiment, &self.at.model, param)
    }

    fn tag_row(&self, tag: &Name) -> Key {
        rows::LoggedModelTag::key(&self.at.experiment, &self.at.model, tag)
    }

    fn writable(&self) -> Condition {
        Condition::item_exists()
    }

    fn check(&self, item: Option<&Item>) -> Result<()> {
        item.map(|_| ()).ok_or_else(|| self.at.not_found())
    }

    /// Returns the error for changed params. MLflow reports them as a violated constraint of its
    /// database table.
    fn params_differ(&self, conflicts: &[ParamConflict]) -> Error {
        let message = format!(
            "Params of the logged model with ID '{}' have other values already: {}",
            self.at.model,
            print_conflicts(conflicts)
        );
        Error::new(ErrorCode::BadRequest, message)
    }
}
