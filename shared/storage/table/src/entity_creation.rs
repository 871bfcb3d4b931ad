//! Creates new entities without duplicates, even if responses are lost.
//!
//! Clients retry requests that were answered with a server error. If the server had created the
//! entity but lost the response, a retry would create it a second time. So each created item
//! carries a **nonce**, a random value that no other item has. After a lost response, the nonce
//! identifies the item that this request created, even if it was changed in the meantime. If the
//! item is not found, the outcome is unknown, and the client gets an error that it does not retry
//! ([`Failure::Unknown`], `docs/adr/0017-creations.md`).

use std::time::Duration;

use key_schema::attributes::NONCE;
use rand::RngExt;

use crate::{Condition, Failure, Item, Result, RetryPolicy, Table, Value, Write, WriteRefusal, bytes};

impl Table {
    /// Creates an item that must not exist yet, together with the writes in `others`, all or
    /// nothing. Sends one request ([`Table::put`], or [`Table::transact`] if there are other
    /// writes), and one more if a response was lost.
    ///
    /// # Errors
    /// [`Failure::Cancelled`] if an item with this key exists, or if the condition of one of the
    /// other writes does not hold. The first reason is that of the item, even if there are no other
    /// writes. [`Failure::Unknown`] if it is uncertain whether the item was written. After any
    /// other failure, nothing was written.
    pub async fn create(&self, item: Item, others: Vec<Write>) -> Result<()> {
        let nonce = bytes(rand::rng().random::<u64>().to_be_bytes().to_vec());
        let item = item.with(NONCE, nonce.clone());
        let mut lost = false;
        let outcome = if others.is_empty() {
            let outcome = self.put_noting(&mut lost, item.clone(), &Condition::item_missing()).await;
            outcome.map_err(|failure| match failure {
                Failure::Refused { item, .. } => Failure::Cancelled(vec![WriteRefusal::Refused(item)]),
                other => other,
            })
        } else {
            let created = Write::Put(item.clone(), Condition::item_missing());
            let writes: Vec<_> = std::iter::once(created).chain(others).collect();
            self.transact_noting(&mut lost, &writes).await
        };
        match outcome {
            Err(failure) if lost => self.look_for(&item, &nonce, failure).await,
            outcome => outcome,
        }
    }

    /// Executes writes that create an entity within an existing item, all or nothing. Sends one
    /// request. If a response was lost, `is_made` checks whether the entity exists, and takes one
    /// request.
    ///
    /// # Errors
    /// Same as [`create`](Self::create).
    pub async fn create_within(&self, writes: &[Write], is_made: impl Future<Output = Result<bool>>) -> Result<()> {
        let mut lost = false;
        match self.transact_noting(&mut lost, writes).await {
            Err(failure) if lost => match is_made.await {
                Ok(true) => Ok(()),
                Ok(false) if matches!(failure, Failure::Cancelled(_)) => Err(failure),
                // The entity was not found or could not be read. An attempt may still be in flight
                // and create it, so the outcome is unknown.
                outcome => {
                    let cause = format!("{failure:?}; looking for the entity afterwards: {outcome:?}");
                    tracing::error!(cause, "the outcome of a creation is unknown");
                    Err(Failure::Unknown(cause))
                }
            },
            outcome => outcome,
        }
    }

    /// Checks whether an attempt to create the item has succeeded. Called when the response to an
    /// attempt was lost and the last attempt failed with `failure`.
    async fn look_for(&self, item: &Item, nonce: &Value, failure: Failure) -> Result<()> {
        let is_ours = |found: &Item| found.value(NONCE) == Some(nonce);
        if let Failure::Cancelled(reasons) = &failure
            && let Some(WriteRefusal::Refused(Some(found))) = reasons.first()
        {
            return if is_ours(found) { Ok(()) } else { Err(failure) };
        }
        let key = item.key().ok_or_else(|| Failure::Unexpected("an item without a key was created".to_owned()))?;
        // This limit is short because the check and the previous attempts have to fit into the
        // function's timeout together.
        let retry = RetryPolicy { patience: Duration::from_secs(3), ..self.retry };
        match self.with_retry(retry).get(&key).await {
            Ok(Some(found)) if is_ours(&found) => Ok(()),
            // A condition refused the last attempt. It would also refuse an earlier attempt that is
            // still in flight.
            Ok(_) if matches!(failure, Failure::Cancelled(_)) => Err(failure),
            // The item was not found or could not be read. An attempt may still be in flight and
            // create it, so the outcome is unknown.
            outcome => {
                let cause = format!("{failure:?}; looking for {key:?} afterwards: {}", looked(&outcome));
                tracing::error!(cause, "the outcome of a creation is unknown");
                Err(Failure::Unknown(cause))
            }
        }
    }
}

fn looked(outcome: &Result<Option<Item>>) -> String {
    match outcome {
        Ok(Some(_)) => "another item has the key".to_owned(),
        Ok(None) => "it does not exist".to_owned(),
        Err(failure) => format!("{failure:?}"),
    }
}
