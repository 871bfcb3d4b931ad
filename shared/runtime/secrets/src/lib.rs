//! Secrets that users store, such as those that sign webhooks.
//!
//! A secret is encrypted with a data key of its own, and the data key is encrypted with a key that
//! the table does not contain: a key of KMS, or that of a key file of a local server. Both layers
//! are bound to the entity that the secret belongs to, so that a sealed secret that is copied to
//! another entity cannot be opened.
//!
//! Begin reading with `keys.rs`. `envelope.rs` describes the format. `client_secrets/` reads secrets
//! of another kind: those with which this server authenticates at identity providers, which
//! operators store outside of the table.
//!
//! This is a crate of its own because the functions that store secrets share no other code, and
//! because no other function may depend on code that opens secrets.

mod client_secrets;
mod context;
mod envelope;
mod error;
mod key_file;
mod keys;
mod kms;
mod secret;
#[cfg(test)]
mod tests;

pub use client_secrets::{ClientSecretError, ClientSecrets, ParameterStore};
pub use context::SecretContext;
pub use error::{KeyFileError, SecretError};
pub use key_file::KeyFile;
pub use keys::SecretKeys;
pub use kms::KmsKey;
pub use secret::{MAX_SECRET_BYTES, SealedSecret, Secret};
