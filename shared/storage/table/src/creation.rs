//! Making something new: once, or certainly not.
//!
//! Clients repeat a request that was answered with a server's error. A creation that was written
//! all the same would then be there twice. So each created item carries a **nonce**: a random value
//! of its own. Where an answer was lost, the nonce tells our item from any other's, even if it was
//! changed meanwhile. If the item cannot be found, the outcome is unknown. Then the client gets an
//! answer that it does not repeat ([`Failure::Unknown`], `docs/adr/0017-creations.md`).

use std::time::Duration;

use key_schema::attributes::NONCE;
use rand::RngExt;

use crate::{Condition, Failure, Item, Reason, Result, Retry, Table, Value, Write, bytes};

impl Table {
    /// Writes an item that must not be there yet, and other writes with it, together or not at all. One request, as
    /// [`Table::put`] or, if there are others, as [`Table::transact`]; one more if an answer was lost.
    ///
    /// # Errors
    /// [`Failure::Cancelled`] if there is an item with this key, or a condition of the others does not hold; the first reason is
    /// the item's, even if it is alone. [`Failure::Unknown`] if it may have been written and may not. After any other failure
    /// nothing was written.
    pub async fn create(&self, item: Item, others: Vec<Write>) -> Result<()> {
        let nonce = bytes(rand::rng().random::<u64>().to_be_bytes().to_vec());
        let item = item.with(NONCE, nonce.clone());
        let mut lost = false;
        let outcome = if others.is_empty() {
            let outcome = self.put_noting(&mut lost, item.clone(), &Condition::item_missing()).await;
            outcome.map_err(|failure| match failure {
                Failure::Refused { item, .. } => Failure::Cancelled(vec![Reason::Refused(item)]),
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

    /// Whether an item is there that an answer was lost about, after the last attempt failed so.
    async fn look_for(&self, item: &Item, nonce: &Value, failure: Failure) -> Result<()> {
        let is_ours = |found: &Item| found.value(NONCE) == Some(nonce);
        if let Failure::Cancelled(reasons) = &failure
            && let Some(Reason::Refused(Some(found))) = reasons.first()
        {
            return if is_ours(found) { Ok(()) } else { Err(failure) };
        }
        let key = item.key().ok_or_else(|| Failure::Unexpected("an item without a key was created".to_owned()))?;
        // Together with the attempts before, within the time that a function has.
        let retry = Retry { patience: Duration::from_secs(3), ..self.retry };
        match self.with_retry(retry).get(&key).await {
            Ok(Some(found)) if is_ours(&found) => Ok(()),
            // A condition refused the last attempt, as it would any that is still on its way.
            Ok(_) if matches!(failure, Failure::Cancelled(_)) => Err(failure),
            // An item that is not there yet may still be on its way.
            outcome => {
                let cause = format!("{failure:?}; looking for {key:?} afterwards: {}", looked(&outcome));
                tracing::error!(cause, "it is not known whether something was created");
                Err(Failure::Unknown(cause))
            }
        }
    }
}

fn looked(outcome: &Result<Option<Item>>) -> String {
    match outcome {
        Ok(Some(_)) => "another is there".to_owned(),
        Ok(None) => "it is not there".to_owned(),
        Err(failure) => format!("{failure:?}"),
    }
}
