//! Deleting review queues.

use access::Granted;
use entities::attributes::{ATTACHED, CHANGES, NAME};
use key_schema::rows;
use mlflow_api::{ExperimentId, Result, ReviewQueueId};
use table::{Condition, Failure, Write};

use super::queue_items::{name_key, queue_key};
use crate::store::Store;

impl Store {
    /// Deletes a review queue, if it exists, with its items. Takes two requests, and two more per 25
    /// items. The items are deleted first, so that a request that is interrupted can be repeated.
    pub async fn review_queue_delete(&self, experiment: &Granted<ExperimentId>, queue: &ReviewQueueId) -> Result<()> {
        if queue.experiment() != **experiment {
            return Ok(());
        }
        let mut attempts = self.table.attempts("a review queue");
        loop {
            attempts.next().await?;
            let Some(item) = self.table.get(&queue_key(queue)).await? else { return Ok(()) };
            self.table.delete_range(rows::ReviewItem::partition(queue)).await?;
            // If items are added concurrently, this condition fails, and they are deleted as well.
            let is_same = Condition::unchanged(&item, CHANGES).and(Condition::unchanged(&item, ATTACHED));
            let name = item.get(NAME).unwrap_or_default();
            let writes = [
                Write::Delete(queue_key(queue), is_same),
                Write::Delete(name_key(**experiment, name), Condition::Always),
            ];
            match self.table.transact(&writes).await {
                Ok(()) => return Ok(()),
                Err(Failure::Cancelled(_)) => {}
                Err(failure) => return Err(failure.into()),
            }
        }
    }
}
