//! Bounds of a search: far more than anybody writes, and little enough that no request keeps the
//! server busy for long.
//!
//! Stock MLflow has such bounds too, where its tools have them. Its parser takes 10,000 tokens and
//! a nesting of 100 ([`crate::syntax`]). SQLite takes 64 tables in a join, one for each condition
//! on a metric, a param or a tag.

use mlflow_api::{Error, Result};

/// Bytes of a filter string.
const FILTER: usize = 256 << 10;
/// Comparisons in a filter string.
const COMPARISONS: usize = 500;
/// Clauses of an ordering.
const ORDER_CLAUSES: usize = 100;
/// Bytes of a clause of an ordering. A key has at most 250 characters.
const ORDER_CLAUSE: usize = 8 << 10;
/// Datasets a search of logged models is limited to.
const DATASETS: usize = 100;

/// Refuses a filter string that is too long.
pub(crate) fn filter(filter: &str) -> Result<()> {
    if filter.len() <= FILTER {
        return Ok(());
    }
    Err(Error::invalid(format!("The filter string has {} bytes. At most {FILTER} are allowed.", filter.len())))
}

/// Refuses a filter of too many comparisons.
pub(crate) fn comparisons(count: usize) -> Result<()> {
    if count <= COMPARISONS {
        return Ok(());
    }
    Err(Error::invalid(format!("The filter string has {count} comparisons. At most {COMPARISONS} are allowed.")))
}

/// Refuses an ordering of too many clauses, or of too long ones.
pub(crate) fn ordering<'a>(clauses: impl ExactSizeIterator<Item = &'a str>) -> Result<()> {
    let count = clauses.len();
    if count > ORDER_CLAUSES {
        return Err(Error::invalid(format!("`order_by` has {count} clauses. At most {ORDER_CLAUSES} are allowed.")));
    }
    match clauses.map(str::len).find(|length| *length > ORDER_CLAUSE) {
        None => Ok(()),
        Some(length) => Err(Error::invalid(format!(
            "A clause of `order_by` has {length} bytes. At most {ORDER_CLAUSE} are allowed."
        ))),
    }
}

/// Refuses a search of logged models that is limited to too many datasets.
pub(crate) fn datasets(count: usize) -> Result<()> {
    if count <= DATASETS {
        return Ok(());
    }
    Err(Error::invalid(format!("`datasets` has {count} entries. At most {DATASETS} are allowed.")))
}
