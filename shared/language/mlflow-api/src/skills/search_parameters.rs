//! Parameters of searches of skills and of versions.

use super::limits::MAX_PAGE;
use crate::mcp_servers::validation::{integer, invalid_request, is_greater};
use crate::{Error, Request, Result, SkillName};

/// Page size for requests without `max_results`.
const DEFAULT_PAGE: &str = "100";

/// The parameters of a search, as the client sent them.
#[derive(Clone, Debug, Default)]
pub struct SkillSearchParameters {
    /// Filter string.
    pub filter: String,
    /// Order clauses.
    pub order_by: Vec<String>,
    /// Page size: the digits of an integer, which is only checked by [`page_size`](Self::page_size).
    pub max_results: String,
    /// Token that the previous page returned.
    pub page_token: String,
}

impl SkillSearchParameters {
    /// Reads the parameters from a request.
    ///
    /// # Errors
    /// Fails with `INVALID_PARAMETER_VALUE` if the page size is not an integer.
    pub fn read(request: &Request) -> Result<Self> {
        // If a parameter is repeated, its last value is used, as in Starlette.
        let last = |name: &str| request.arguments(name).last().copied();
        let refused = || {
            invalid_request("query.max_results: Input should be a valid integer, unable to parse string as an integer")
        };
        let max_results = match last("max_results") {
            None => DEFAULT_PAGE.to_owned(),
            Some(text) => integer(text).ok_or_else(refused)?,
        };
        Ok(Self {
            filter: last("filter_string").unwrap_or_default().to_owned(),
            order_by: request.arguments("order_by").into_iter().map(str::to_owned).collect(),
            max_results,
            page_token: last("page_token").unwrap_or_default().to_owned(),
        })
    }

    /// Checks the page size (`validate_max_results`), and returns it.
    ///
    /// # Errors
    /// Fails with `INVALID_PARAMETER_VALUE` if the page size is out of range.
    pub fn page_size(&self) -> Result<usize> {
        let size = self.max_results.as_str();
        if !is_greater(size, 0) {
            return Err(Error::invalid(format!("max_results must be at least 1, got {size}.")));
        }
        if is_greater(size, MAX_PAGE) {
            return Err(Error::invalid(format!("max_results must be at most {MAX_PAGE}, got {size}.")));
        }
        size.parse().map_err(Error::internal)
    }
}

/// Returns the names of the skills that a search is restricted to, or `None` if it is not
/// restricted. If the only name is empty, the search is restricted to no skills.
///
/// # Errors
/// Fails with `INVALID_PARAMETER_VALUE` if MLflow refuses a name.
pub fn selected_names(request: &Request) -> Result<Option<Vec<SkillName>>> {
    match request.arguments("include_skill_identities").as_slice() {
        [] => Ok(None),
        [""] => Ok(Some(Vec::new())),
        names => names.iter().map(|name| SkillName::parse(name)).collect::<Result<_>>().map(Some),
    }
}
