//! Limits on the size of a search. They are far above the size of searches that people write, and
//! low enough that no request keeps the server busy for long.
//!
//! Stock MLflow has such limits as well, as a consequence of the tools that it uses. Its parser
//! accepts 10,000 tokens and a nesting depth of 100 ([`crate::syntax`]). SQLite accepts 64 tables
//! in a join, and each condition on a metric, a param or a tag takes one table.

use mlflow_api::{Error, Result};

/// Maximum length of a filter string, in bytes.
const MAX_FILTER_BYTES: usize = 256 << 10;
/// Maximum number of comparisons in a filter string.
const MAX_COMPARISONS: usize = 500;
/// Maximum number of clauses in an ordering.
const MAX_ORDER_CLAUSES: usize = 100;
/// Maximum length of a clause of an ordering, in bytes. A key has at most 250 characters.
const MAX_ORDER_CLAUSE_BYTES: usize = 8 << 10;
/// Maximum number of datasets to which a search of logged models can restrict metrics.
const MAX_DATASETS: usize = 100;

/// Rejects a filter string that is too long.
pub(crate) fn filter(filter: &str) -> Result<()> {
    if filter.len() <= MAX_FILTER_BYTES {
        return Ok(());
    }
    Err(Error::invalid(format!(
        "The filter string has {} bytes. At most {MAX_FILTER_BYTES} are allowed.",
        filter.len()
    )))
}

/// Rejects a filter with too many comparisons.
pub(crate) fn comparisons(count: usize) -> Result<()> {
    if count <= MAX_COMPARISONS {
        return Ok(());
    }
    Err(Error::invalid(format!("The filter string has {count} comparisons. At most {MAX_COMPARISONS} are allowed.")))
}

/// Rejects an ordering with too many clauses, or with a clause that is too long.
pub(crate) fn ordering<'a>(clauses: impl ExactSizeIterator<Item = &'a str>) -> Result<()> {
    let count = clauses.len();
    if count > MAX_ORDER_CLAUSES {
        return Err(Error::invalid(format!(
            "`order_by` has {count} clauses. At most {MAX_ORDER_CLAUSES} are allowed."
        )));
    }
    match clauses.map(str::len).find(|length| *length > MAX_ORDER_CLAUSE_BYTES) {
        None => Ok(()),
        Some(length) => Err(Error::invalid(format!(
            "A clause of `order_by` has {length} bytes. At most {MAX_ORDER_CLAUSE_BYTES} are allowed."
        ))),
    }
}

/// Rejects a search of logged models that restricts metrics to too many datasets.
pub(crate) fn datasets(count: usize) -> Result<()> {
    if count <= MAX_DATASETS {
        return Ok(());
    }
    Err(Error::invalid(format!("`datasets` has {count} entries. At most {MAX_DATASETS} are allowed.")))
}
