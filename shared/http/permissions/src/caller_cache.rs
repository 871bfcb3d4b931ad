//! A per-process cache of authenticated callers.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use access::{Credentials, Identity};
use mlflow_api::UserName;
use rand::RngExt;
use sha2::{Digest, Sha256};

/// Capacity of the cache. When it is full, the cache is cleared.
const MAX_CALLERS: usize = 10_000;

/// A cache of identities by their credentials. Keys are digests of the credentials, keyed by a
/// secret of this process. A hit saves the request that identifies the caller. The read of the
/// request's guards then also checks whether the credentials are still valid.
pub(crate) struct CallerCache {
    callers: Mutex<HashMap<[u8; 32], Identity>>,
    key: [u8; 32],
}

impl Default for CallerCache {
    fn default() -> Self {
        Self { callers: Mutex::default(), key: rand::rng().random() }
    }
}

impl CallerCache {
    pub(crate) fn get(&self, credentials: &Credentials) -> Option<Identity> {
        self.callers.lock().unwrap_or_else(PoisonError::into_inner).get(&self.digest(credentials)).cloned()
    }

    /// Caches the identity that belongs to these credentials. The credentials themselves are not
    /// stored.
    pub(crate) fn insert(&self, credentials: &Credentials, identity: &Identity) {
        let mut callers = self.callers.lock().unwrap_or_else(PoisonError::into_inner);
        if callers.len() >= MAX_CALLERS {
            callers.clear();
        }
        callers.insert(self.digest(credentials), Identity { request_credentials: None, ..identity.clone() });
    }

    pub(crate) fn remove(&self, credentials: &Credentials) {
        self.callers.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.digest(credentials));
    }

    fn digest(&self, credentials: &Credentials) -> [u8; 32] {
        let (kind, secret) = match credentials {
            Credentials::Password(_, password) => ("password", password),
            Credentials::Session(_, digest) => ("session", digest),
            Credentials::Token(_, digest) => ("token", digest),
            Credentials::Signature(principal) => ("signature", principal),
        };
        let mut hash = Sha256::new();
        hash.update(self.key);
        // The parts are separated by a zero byte, which user names cannot contain.
        hash.update(format!("{kind}\0{}\0{secret}", credentials.user().map_or("", UserName::as_str)));
        hash.finalize().into()
    }
}
