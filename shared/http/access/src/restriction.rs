//! Restrictions of credentials, which limit them to a part of their user's rights.

use mlflow_api::ExperimentId;

/// Restrictions of a request's credentials, which limit the rights of the caller.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Restriction {
    /// The only experiment that the credentials may access; `None` for all experiments.
    pub experiment: Option<ExperimentId>,
    /// The actions that the credentials may be used for.
    pub actions: AllowedActions,
}

/// The actions that credentials may be used for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AllowedActions {
    /// Everything that the user may do.
    #[default]
    All,
    /// Reading and listing.
    Read,
    /// Sending traces.
    Ingest,
}

impl AllowedActions {
    /// All values, from the widest to the narrowest.
    pub const ALL: [Self; 3] = [Self::All, Self::Read, Self::Ingest];

    /// Returns the name that is stored and used in messages.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::All => "everything",
            Self::Read => "read",
            Self::Ingest => "ingest",
        }
    }

    /// Returns the value with this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|only| only.name() == name)
    }
}

impl Restriction {
    /// Checks whether the credentials are unrestricted.
    #[must_use]
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }
}
