//! The entity that a secret belongs to.

/// The entity that a secret belongs to. A secret can only be opened with the context that it was
/// sealed with. All fields are visible in KMS's logs, so they must not be confidential.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SecretContext<'a> {
    /// The kind of the entity, such as `webhook`.
    pub purpose: &'static str,
    /// Id of the workspace.
    pub workspace: &'a str,
    /// Id of the entity.
    pub owner: &'a str,
}

impl SecretContext<'_> {
    /// Returns the additional authenticated data of a layer of encryption. Each part is preceded by
    /// its length, so that no two contexts have the same data.
    pub(crate) fn authenticated_data(&self, layer: &str) -> Vec<u8> {
        let mut data = Vec::new();
        for part in [layer, self.purpose, self.workspace, self.owner] {
            data.extend_from_slice(&(part.len() as u64).to_be_bytes());
            data.extend_from_slice(part.as_bytes());
        }
        data
    }
}
