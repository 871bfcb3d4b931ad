//! Orderings of logged models (`_apply_order_by_search_logged_models`).

use mlflow_api::{Error, ErrorCode, Result};

use crate::filter::{ModelAttribute, ModelCode, ModelText, ModelTime};
use crate::order_by::{OrderTerm, SortDirection};
use crate::size_limits;

/// An order clause of a search of logged models, as received.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelOrderBy {
    /// An attribute, or `metrics.` followed by the name of a metric.
    pub field: String,
    /// Whether smaller values come first. Missing values come last in both directions.
    pub ascending: bool,
    /// The name of the dataset that points must be on. Empty for all datasets.
    pub dataset_name: String,
    /// The digest of the dataset that points must be on. Empty for all datasets.
    pub dataset_digest: String,
}

/// The fields that logged models can be sorted by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ModelSortBy {
    /// The value of the latest point of a metric. If a dataset is given, only points on this
    /// dataset count.
    Metric {
        /// The name of the metric.
        key: String,
        /// The name of the dataset. Empty for any.
        dataset_name: String,
        /// The digest of the dataset. Empty for any.
        dataset_digest: String,
    },
    /// A text attribute.
    Text(ModelText),
    /// A numeric attribute that filters compare as text.
    Code(ModelCode),
    /// A time.
    Time(ModelTime),
}

/// A total order of logged models. It is total because the id is one of its terms.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelOrder {
    /// The terms, in descending order of precedence.
    pub terms: Vec<OrderTerm<ModelSortBy>>,
}

impl ModelOrder {
    /// Checks whether this is MLflow's default order: newest first, then by id.
    #[must_use]
    pub fn is_newest_first(&self) -> bool {
        self.terms == newest_first()
    }

    /// Checks whether the order sorts by the runs that created the models.
    #[must_use]
    pub fn asks_for_runs(&self) -> bool {
        self.terms.iter().any(|term| term.by == ModelSortBy::Text(ModelText::SourceRunId))
    }

    /// Checks whether the order depends on points of metrics.
    #[must_use]
    pub fn asks_for_metrics(&self) -> bool {
        self.terms.iter().any(|term| matches!(term.by, ModelSortBy::Metric { .. }))
    }
}

/// Parses the order clauses of a search of logged models. Ties are broken by creation time, newest
/// first, and then by id, unless the clauses already contain these fields.
pub fn parse_model_order(clauses: &[ModelOrderBy]) -> Result<ModelOrder> {
    size_limits::ordering(clauses.iter().map(|clause| clause.field.as_str()))?;
    let mut terms = clauses.iter().map(term).collect::<Result<Vec<_>>>()?;
    for last in newest_first() {
        if !terms.iter().any(|term| term.by == last.by) {
            terms.push(last);
        }
    }
    Ok(ModelOrder { terms })
}

fn newest_first() -> Vec<OrderTerm<ModelSortBy>> {
    vec![
        OrderTerm { by: ModelSortBy::Time(ModelTime::Created), direction: SortDirection::Descending },
        OrderTerm { by: ModelSortBy::Text(ModelText::ModelId), direction: SortDirection::Ascending },
    ]
}

fn term(clause: &ModelOrderBy) -> Result<OrderTerm<ModelSortBy>> {
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
    let direction = if clause.ascending { SortDirection::Ascending } else { SortDirection::Descending };
    Ok(OrderTerm { by, direction })
}
