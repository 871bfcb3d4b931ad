//! Orderings of logged models (`_apply_order_by_search_logged_models`).

use mlflow_api::{Error, ErrorCode, Result};

use crate::bounds;
use crate::filter::{ModelAttribute, ModelCode, ModelText, ModelTime};
use crate::order_by::{Direction, Term};

/// An order clause of a search of logged models, as it was sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelOrderBy {
    /// An attribute, or `metrics.` and a metric.
    pub field: String,
    /// Which way; nothing comes last in either.
    pub ascending: bool,
    /// Only points on the dataset of this name count; empty for all.
    pub dataset_name: String,
    /// Only points on a dataset of this digest count; empty for all.
    pub dataset_digest: String,
}

/// The fields that logged models are sorted by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ModelSortBy {
    /// The latest point of a metric among those on a dataset.
    Metric {
        /// The metric's name.
        key: String,
        /// Name of the dataset; empty for any.
        dataset_name: String,
        /// Digest of the dataset; empty for any.
        dataset_digest: String,
    },
    /// A text.
    Text(ModelText),
    /// A number.
    Code(ModelCode),
    /// A time.
    Time(ModelTime),
}

/// A total order of logged models: the id is one of its terms.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelOrder {
    /// The terms, the first decides first.
    pub terms: Vec<Term<ModelSortBy>>,
}

impl ModelOrder {
    /// Whether it is MLflow's default: newest first, then by id.
    #[must_use]
    pub fn is_newest_first(&self) -> bool {
        self.terms == newest_first()
    }

    /// Whether it sorts by the runs that made the models.
    #[must_use]
    pub fn asks_for_runs(&self) -> bool {
        self.terms.iter().any(|term| term.by == ModelSortBy::Text(ModelText::SourceRunId))
    }

    /// Whether it looks at points of metrics.
    #[must_use]
    pub fn asks_for_metrics(&self) -> bool {
        self.terms.iter().any(|term| matches!(term.by, ModelSortBy::Metric { .. }))
    }
}

/// Reads the order clauses of a search of logged models. The newest come first, then the id decides, unless the clauses
/// say otherwise.
pub fn parse_model_order(clauses: &[ModelOrderBy]) -> Result<ModelOrder> {
    bounds::ordering(clauses.iter().map(|clause| clause.field.as_str()))?;
    let mut terms = clauses.iter().map(term).collect::<Result<Vec<_>>>()?;
    for last in newest_first() {
        if !terms.iter().any(|term| term.by == last.by) {
            terms.push(last);
        }
    }
    Ok(ModelOrder { terms })
}

fn newest_first() -> Vec<Term<ModelSortBy>> {
    vec![
        Term { by: ModelSortBy::Time(ModelTime::Created), direction: Direction::Descending },
        Term { by: ModelSortBy::Text(ModelText::ModelId), direction: Direction::Ascending },
    ]
}

fn term(clause: &ModelOrderBy) -> Result<Term<ModelSortBy>> {
    let field = &clause.field;
    let by = match field.split_once('.') {
        Some(("metrics", key)) => ModelSortBy::Metric {
            key: key.to_owned(),
            dataset_name: clause.dataset_name.clone(),
            dataset_digest: clause.dataset_digest.clone(),
        },
        Some(_) => {
            let message = format!("Invalid order by field name: {field}. Only metrics are supported.");
            return Err(Error::invalid(message));
        }
        None => match ModelAttribute::parse(field) {
            Some(ModelAttribute::Text(attribute)) => ModelSortBy::Text(attribute),
            Some(ModelAttribute::Code(attribute)) => ModelSortBy::Code(attribute),
            Some(ModelAttribute::Time(attribute)) => ModelSortBy::Time(attribute),
            None => {
                let message = format!("Invalid order by field name: {field}");
                return Err(Error::new(ErrorCode::AttributeNotFound, message));
            }
        },
    };
    let direction = if clause.ascending { Direction::Ascending } else { Direction::Descending };
    Ok(Term { by, direction })
}
