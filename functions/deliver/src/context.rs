//! What an attempt to deliver an event needs: the table, the sender and the keys.

use std::sync::Arc;

use secrets::SecretKeys;
use table::Table;

use crate::sender::Sender;

/// The table, the sender and the keys of a process. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Context {
    pub(crate) table: Table,
    pub(crate) sender: Arc<dyn Sender>,
    pub(crate) keys: Arc<SecretKeys>,
}
