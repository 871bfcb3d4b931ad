//! Orderings of searches in the registry of MCP servers.

use mlflow_api::{Error, McpVersion, Result};

use super::{McpEntity, McpFields, McpText, McpTime, text, time};
use crate::order_by::{OrderTerm, SortDirection, parse_clauses};
use crate::sort_key::{SortKey, SortKeyValue};

/// A total order of entities. It is total because the last term has a different value for each
/// entity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct McpOrder {
    terms: Vec<OrderTerm<McpSortBy>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum McpSortBy {
    Text(McpText),
    Time(McpTime),
    Precedence,
}

/// Parses an ordering (`_parse_search_mcp_servers_order_by` and its siblings).
pub(super) fn parse(entity: McpEntity, clauses: &[String]) -> Result<McpOrder> {
    let mut terms: Vec<OrderTerm<McpSortBy>> = Vec::new();
    let mut observed = Vec::new();
    for clause in parse_clauses(clauses)? {
        let (written, direction) = clause?;
        let key = entity.order_keys().iter().copied().find(|known| *known == written).ok_or_else(|| {
            let valid = mlflow_api::python::repr_list(entity.order_keys());
            Error::invalid(format!("Invalid order_by key '{written}'. Valid keys: {valid}"))
        })?;
        if observed.contains(&key) {
            return Err(Error::invalid(format!("Duplicate order_by field: '{key}'")));
        }
        observed.push(key);
        let by = match (time(key), text(key)) {
            (Some(time), _) => McpSortBy::Time(time),
            (None, Some(McpText::Version)) => McpSortBy::Precedence,
            (None, Some(text)) => McpSortBy::Text(text),
            (None, None) => continue,
        };
        terms.push(OrderTerm { by, direction });
    }
    let ascending = |by| OrderTerm { by, direction: SortDirection::Ascending };
    match entity {
        McpEntity::Server if observed.contains(&"name") => {}
        McpEntity::Server => terms.push(ascending(McpSortBy::Text(McpText::Name))),
        McpEntity::Version => {
            if !observed.contains(&"created_at") {
                terms.push(ascending(McpSortBy::Time(McpTime::Created)));
            }
            terms.push(ascending(McpSortBy::Text(McpText::Version)));
        }
        McpEntity::Endpoint if observed.contains(&"id") => {}
        McpEntity::Endpoint => terms.push(ascending(McpSortBy::Text(McpText::Id))),
    }
    Ok(McpOrder { terms })
}

impl McpOrder {
    /// Returns the sort key of an entity. Sorting entities by these keys results in this order.
    #[must_use]
    pub fn key(&self, entity: &impl McpFields) -> SortKey {
        SortKey::of(self.terms.iter().map(|term| {
            let value = match term.by {
                McpSortBy::Text(field) => SortKeyValue::text(entity.text(field)),
                McpSortBy::Time(field) => SortKeyValue::Integer(entity.time(field)),
                McpSortBy::Precedence => {
                    let key = entity.version().map(McpVersion::precedence_key);
                    SortKeyValue::text(key.as_deref())
                }
            };
            (term.direction, value)
        }))
    }

    /// Checks whether servers are sorted by name alone, in ascending order, which is the order of
    /// their rows.
    #[must_use]
    pub fn is_by_name(&self) -> bool {
        let by_name = OrderTerm { by: McpSortBy::Text(McpText::Name), direction: SortDirection::Ascending };
        self.terms.first() == Some(&by_name)
    }
}
