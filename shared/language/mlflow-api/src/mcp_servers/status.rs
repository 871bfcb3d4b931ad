//! The statuses of versions, and the transports of access endpoints.

use std::fmt;

use crate::{Error, Result};

/// The status of a version (`MCPStatus`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum McpStatus {
    /// Not active yet.
    Draft,
    /// Ready for use.
    Active,
    /// No longer recommended.
    Deprecated,
    /// Deleted. Reads do not return the version, and its name remains taken.
    Deleted,
}

impl McpStatus {
    const ALL: [Self; 4] = [Self::Draft, Self::Active, Self::Deprecated, Self::Deleted];

    /// Returns MLflow's name of the status.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Draft => "draft",
            Self::Active => "active",
            Self::Deprecated => "deprecated",
            Self::Deleted => "deleted",
        }
    }

    /// Returns the status with this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.name() == name)
    }

    /// Parses the status in a request (`_parse_status`).
    ///
    /// # Errors
    /// Fails with `INVALID_PARAMETER_VALUE` for an unknown name.
    pub fn parse(name: &str) -> Result<Self> {
        Self::from_name(name).ok_or_else(|| Error::invalid(format!("Invalid status: '{name}'")))
    }

    /// Checks the status of a new version (`_validate_mcp_initial_status`).
    ///
    /// # Errors
    /// Fails with `INVALID_PARAMETER_VALUE` for any other status than draft and active.
    pub fn check_initial(self) -> Result<()> {
        if matches!(self, Self::Draft | Self::Active) {
            return Ok(());
        }
        Err(Error::invalid("Initial MCP server registration status must be 'draft' or 'active'."))
    }

    /// Checks a change of status (`_validate_status_transition`).
    ///
    /// # Errors
    /// Fails with `INVALID_PARAMETER_VALUE` if MLflow does not allow the change.
    pub fn check_change(self, to: Self) -> Result<()> {
        let allowed: &[Self] = match self {
            Self::Draft | Self::Deprecated => &[Self::Active, Self::Deleted],
            Self::Active => &[Self::Deprecated, Self::Draft],
            Self::Deleted => &[],
        };
        if allowed.contains(&to) {
            return Ok(());
        }
        let allowed: Vec<_> = allowed.iter().map(|status| status.name()).collect();
        Err(Error::invalid(format!(
            "Invalid status transition from '{self}' to '{to}'. Allowed transitions: {}",
            crate::python::repr_list(&allowed)
        )))
    }
}

impl fmt::Display for McpStatus {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

/// How clients connect to an access endpoint (`MCPRemoteTransportType`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransportType {
    /// HTTP with streamed responses.
    StreamableHttp,
    /// Server-sent events.
    Sse,
}

impl TransportType {
    /// Returns MLflow's name of the transport.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::StreamableHttp => "streamable-http",
            Self::Sse => "sse",
        }
    }

    /// Parses the transport in a request (`_parse_transport_type`).
    ///
    /// # Errors
    /// Fails with `INVALID_PARAMETER_VALUE` for an unknown name.
    pub fn parse(name: &str) -> Result<Self> {
        [Self::StreamableHttp, Self::Sse]
            .into_iter()
            .find(|transport| transport.name() == name)
            .ok_or_else(|| Error::invalid(format!("Invalid transport_type: '{name}'")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_mlflows_changes_of_status_are_allowed() {
        let allowed: Vec<_> = McpStatus::ALL
            .into_iter()
            .flat_map(|from| McpStatus::ALL.into_iter().map(move |to| (from, to)))
            .filter(|(from, to)| from.check_change(*to).is_ok())
            .map(|(from, to)| format!("{from} {to}"))
            .collect();
        let expected = [
            "draft active",
            "draft deleted",
            "active draft",
            "active deprecated",
            "deprecated active",
            "deprecated deleted",
        ];
        assert_eq!(allowed, expected);
        assert_eq!(
            McpStatus::Deleted.check_change(McpStatus::Deleted).unwrap_err().message,
            "Invalid status transition from 'deleted' to 'deleted'. Allowed transitions: []"
        );
    }
}
