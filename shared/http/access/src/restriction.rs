//! The limits that credentials set to the rights of their user.

use mlflow_api::ExperimentId;

/// The limits that the credentials of a request set to the rights of its caller.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Restriction {
    /// The one experiment that they are for; `None`, if they are for everything.
    pub experiment: Option<ExperimentId>,
    /// The actions that they are limited to.
    pub only: Only,
}

/// The actions that credentials are limited to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Only {
    /// Whatever their user may do.
    #[default]
    Everything,
    /// To read and to list.
    Reading,
    /// To send traces.
    Ingest,
}

impl Only {
    /// Every kind, the widest first.
    pub const ALL: [Self; 3] = [Self::Everything, Self::Reading, Self::Ingest];

    /// As it is stored and named.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Everything => "everything",
            Self::Reading => "read",
            Self::Ingest => "ingest",
        }
    }

    /// The kind of a name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|only| only.name() == name)
    }
}

impl Restriction {
    /// Whether nothing is left out.
    #[must_use]
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }
}
