//! Parameters of searches in the registry of MCP servers.

use super::validation::{integer, invalid_request, is_greater};
use crate::{Error, Request, Result};

/// Page size for requests without `max_results`.
const DEFAULT_PAGE: &str = "100";

/// The parameters of a search, as the client sent them.
#[derive(Clone, Debug, Default)]
pub struct McpSearchParameters {
    /// Filter string.
    pub filter: String,
    /// Order clauses.
    pub order_by: Vec<String>,
    /// Page size: the digits of an integer, which is only checked by [`page_size`](Self::page_size).
    pub max_results: String,
    /// Token that the previous page returned.
    pub page_token: String,
}

impl McpSearchParameters {
    /// Reads the parameters from a request.
    ///
    /// # Errors
    /// Fails with `INVALID_PARAMETER_VALUE` if the page size is not an integer.
    pub fn read(request: &Request) -> Result<Self> {
        // The last value of a repeated parameter counts, as in Starlette.
        let last = |name: &str| request.arguments(name).last().copied();
        let max_results = match last("max_results") {
            None => DEFAULT_PAGE.to_owned(),
            Some(text) => integer(text).ok_or_else(|| {
                invalid_request(
                    "query.max_results: Input should be a valid integer, unable to parse string as an integer",
                )
            })?,
        };
        Ok(Self {
            filter: last("filter_string").unwrap_or_default().to_owned(),
            order_by: request.arguments("order_by").into_iter().map(str::to_owned).collect(),
            max_results,
            page_token: last("page_token").unwrap_or_default().to_owned(),
        })
    }

    /// Checks the page size against its maximum (`_validate_max_results_param`), and returns it.
    ///
    /// # Errors
    /// Fails with `INVALID_PARAMETER_VALUE` if the page size is out of range.
    pub fn page_size(&self, most: i64) -> Result<usize> {
        let size = self.max_results.as_str();
        if !is_greater(size, 0) {
            return Err(Error::invalid(format!(
                "Invalid value {size} for parameter 'max_results' supplied. It must be a positive integer"
            )));
        }
        if is_greater(size, super::MAX_PAGE) {
            return Err(Error::invalid(format!(
                "Invalid value {size} for parameter 'max_results' supplied. It must be at most {}",
                super::MAX_PAGE
            )));
        }
        if is_greater(size, most) {
            return Err(Error::invalid(format!(
                "Invalid value for max_results. It must be at most {most}, but got {size}"
            )));
        }
        size.parse().map_err(Error::internal)
    }
}

/// The version and the alias that the access endpoints of a search must have.
#[derive(Clone, Debug, Default)]
pub struct EndpointTargets {
    /// Version.
    pub server_version: Option<String>,
    /// Alias.
    pub server_alias: Option<String>,
}

impl EndpointTargets {
    /// Reads the parameters from a request.
    #[must_use]
    pub fn read(request: &Request) -> Self {
        let last = |name: &str| request.arguments(name).last().map(|text| (*text).to_owned());
        Self { server_version: last("server_version"), server_alias: last("server_alias") }
    }
}
