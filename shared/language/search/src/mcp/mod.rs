//! Searches in the registry of MCP servers: the filters and the orderings of servers, versions and
//! access endpoints (`SearchMCPServerUtils`, `SearchMCPServerVersionUtils`,
//! `SearchMCPAccessEndpointUtils`).

mod filter;
mod order;

pub use filter::McpFilter;
pub use order::McpOrder;

use mlflow_api::{McpVersion, Result};

/// The kinds of entities that are searched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum McpEntity {
    /// Servers.
    Server,
    /// Versions of a server.
    Version,
    /// Access endpoints.
    Endpoint,
}

/// A text field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum McpText {
    /// The name of the server.
    Name,
    /// The name that user interfaces display.
    DisplayName,
    /// The status of a version. A server has the status of its latest version, and an endpoint that
    /// of the version that it gives access to.
    Status,
    /// The version, as written.
    Version,
    /// The transport of an endpoint.
    TransportType,
    /// The id of an endpoint.
    Id,
}

/// A time, in ms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum McpTime {
    /// When the entity was created.
    Created,
    /// When the entity was last changed.
    Updated,
}

/// The fields of an entity that filters and orderings use.
pub trait McpFields {
    /// Returns a text field.
    fn text(&self, field: McpText) -> Option<&str>;
    /// Returns a time, in ms.
    fn time(&self, field: McpTime) -> i64;
    /// Returns the version number. Only versions of servers have one.
    fn version(&self) -> Option<&McpVersion> {
        None
    }
    /// Checks whether a server has access endpoints.
    fn has_endpoints(&self) -> bool {
        false
    }
    /// Returns the value of a server's tag.
    fn tag(&self, _key: &str) -> Option<&str> {
        None
    }
}

impl McpEntity {
    const fn attributes(self) -> &'static [&'static str] {
        match self {
            Self::Server => {
                &["name", "display_name", "status", "has_access_endpoints", "created_at", "last_updated_at"]
            }
            Self::Version => &["name", "version", "status", "created_at", "last_updated_at"],
            Self::Endpoint => &["status", "server_name", "transport_type", "created_at", "last_updated_at"],
        }
    }

    /// Returns the attributes that can be compared with lists.
    const fn lists(self) -> &'static [&'static str] {
        match self {
            Self::Server => &["name", "status"],
            Self::Version => &["status"],
            Self::Endpoint => &["server_name"],
        }
    }

    /// Returns the fields that entities can be sorted by, in alphabetical order.
    const fn order_keys(self) -> &'static [&'static str] {
        match self {
            Self::Server => &["created_at", "last_updated_at", "name"],
            Self::Version => &["created_at", "last_updated_at", "version"],
            Self::Endpoint => &["created_at", "id", "last_updated_at", "server_name"],
        }
    }

    /// Returns the attribute of this kind of entity that `sqlparse` mistakes for a keyword.
    const fn keyword(self) -> Option<&'static str> {
        match self {
            Self::Server => None,
            Self::Version => Some("version"),
            Self::Endpoint => Some("server_name"),
        }
    }
}

/// Parses the filter and the ordering of a search. If there are several mistakes, returns the error
/// that MLflow would report.
pub fn parse_mcp_search(entity: McpEntity, filter: &str, order_by: &[String]) -> Result<(McpFilter, McpOrder)> {
    Ok((filter::parse(entity, filter)?, order::parse(entity, order_by)?))
}

fn time(key: &str) -> Option<McpTime> {
    match key {
        "created_at" => Some(McpTime::Created),
        "last_updated_at" => Some(McpTime::Updated),
        _ => None,
    }
}

fn text(key: &str) -> Option<McpText> {
    match key {
        "name" | "server_name" => Some(McpText::Name),
        "display_name" => Some(McpText::DisplayName),
        "status" => Some(McpText::Status),
        "version" => Some(McpText::Version),
        "transport_type" => Some(McpText::TransportType),
        "id" => Some(McpText::Id),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Version(McpVersion, i64);

    impl McpFields for Version {
        fn text(&self, field: McpText) -> Option<&str> {
            match field {
                McpText::Name => Some("com.example/a1"),
                McpText::Status => Some("active"),
                McpText::Version => Some(self.0.as_str()),
                _ => None,
            }
        }

        fn time(&self, _: McpTime) -> i64 {
            self.1
        }

        fn version(&self) -> Option<&McpVersion> {
            Some(&self.0)
        }

        fn has_endpoints(&self) -> bool {
            true
        }

        fn tag(&self, key: &str) -> Option<&str> {
            (key == "team").then_some("search")
        }
    }

    fn version(text: &str) -> Version {
        Version(McpVersion::of(text).unwrap(), 5)
    }

    fn message(entity: McpEntity, filter: &str, order_by: &[&str]) -> String {
        let order_by: Vec<_> = order_by.iter().map(|&clause| clause.to_owned()).collect();
        parse_mcp_search(entity, filter, &order_by).unwrap_err().message
    }

    #[test]
    fn conditions_are_all_to_be_met() {
        for (entity, filter, expected) in [
            (McpEntity::Server, "", true),
            (McpEntity::Server, "name > 'com' AND status != 'x'", true),
            (McpEntity::Server, "display_name != 'x'", false),
            (McpEntity::Server, "tags.team = 'search' AND tag.team LIKE 's%'", true),
            (McpEntity::Server, "tags.other != 'x'", false),
            (McpEntity::Server, "has_access_endpoints = 'TRUE'", true),
            (McpEntity::Server, "created_at >= 5 AND last_updated_at < 5.5", true),
            (McpEntity::Version, "version > '1.0.0-rc.1' AND version <= '1.0.0+other'", true),
            (McpEntity::Version, "version = '1.0.0+other'", false),
            (McpEntity::Version, "`version` != '1.0.0-version'", true),
            (McpEntity::Version, "status IN ('active', 'draft')", true),
            (McpEntity::Endpoint, "server_name = 'com.example/a1' AND status = 'active'", true),
        ] {
            let (filter_of, _) = parse_mcp_search(entity, filter, &[]).unwrap();
            assert_eq!(filter_of.matches(&version("1.0.0")), expected, "{filter}");
        }
    }

    #[test]
    fn mistakes_are_named_as_in_mlflow() {
        for (entity, filter, expected) in [
            (McpEntity::Server, "name like 'a'", "Invalid comparator 'like' for attribute 'name'."),
            (McpEntity::Server, "metrics.a > 1", "Invalid filter type 'metric'."),
            (McpEntity::Server, "tags.a IS NULL", "Invalid comparator 'IS NULL' for tag 'a'."),
            (
                McpEntity::Server,
                "name IS NULL",
                "IS NULL / IS NOT NULL is only supported for tags and params, not for 'attribute' 'name'",
            ),
            (
                McpEntity::Server,
                "display_name IN ('a')",
                "Only ['name', 'status'] attributes support comparison with a list of quoted string values.",
            ),
            (
                McpEntity::Server,
                "created_at > 'x'",
                "Expected numeric value type for numeric attribute: created_at. Found 'x'",
            ),
            (McpEntity::Server, "OR name = 'a'", "Invalid clause(s) in filter string: 'OR'"),
            (
                McpEntity::Server,
                "has_access_endpoints = 'yes'",
                "has_access_endpoints only supports '= true' or '= false'",
            ),
            (
                McpEntity::Version,
                "version LIKE '1'",
                "version only supports semantic comparators '=', '!=', '<', '<=', '>', and '>='",
            ),
            (McpEntity::Version, "version > 'x'", "Invalid semantic version for filter_string version: 'x'"),
            (McpEntity::Version, "tags.a='b'", "Invalid filter type 'tag'."),
            (McpEntity::Version, "VERSION = '1.0.0'", "Invalid clause(s) in filter string: 'VERSION', '=', ''1.0.0''"),
        ] {
            assert_eq!(message(entity, filter, &[]), expected, "{filter}");
        }
        for (entity, order, expected) in [
            (McpEntity::Server, &["name", "name DESC"][..], "Duplicate order_by field: 'name'"),
            (McpEntity::Version, &["version"], "Invalid order_by clause 'version'. Could not be parsed."),
            // MLflow only removes the quotes if a direction follows.
            (
                McpEntity::Version,
                &["`version`"],
                "Invalid order_by key '`version`'. Valid keys: ['created_at', 'last_updated_at', 'version']",
            ),
            (
                McpEntity::Version,
                &["name"],
                "Invalid order_by key 'name'. Valid keys: ['created_at', 'last_updated_at', 'version']",
            ),
        ] {
            assert_eq!(message(entity, "", order), expected);
        }
    }

    #[test]
    fn versions_sort_by_precedence_if_that_is_requested() {
        let sorted = |clauses: &[&str]| {
            let clauses: Vec<_> = clauses.iter().map(|&clause| clause.to_owned()).collect();
            let (_, order) = parse_mcp_search(McpEntity::Version, "", &clauses).unwrap();
            let mut versions = ["10.0.0", "2.0.0", "2.0.0-rc.10", "2.0.0-rc.9"].map(version);
            versions.sort_by_cached_key(|version| order.key(version));
            versions.map(|version| version.0.to_string())
        };
        assert_eq!(sorted(&["`version` DESC"]), ["10.0.0", "2.0.0", "2.0.0-rc.10", "2.0.0-rc.9"]);
        assert_eq!(sorted(&[]), ["10.0.0", "2.0.0", "2.0.0-rc.10", "2.0.0-rc.9"]);
        assert_eq!(sorted(&["`version` asc"]), ["2.0.0-rc.9", "2.0.0-rc.10", "2.0.0", "10.0.0"]);
    }
}
