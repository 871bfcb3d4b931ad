//! Creating review queues.

use access::Granted;
use entities::attributes::{NAME, QUEUE};
use entities::now_ms;
use mlflow_api::review_queues::{NewReviewQueue, ReviewQueue, ReviewQueueType, normalized_user};
use mlflow_api::{Error, ErrorCode, ExperimentId, LabelSchemaId, Result, ReviewQueueId, python};
use rand::RngExt;
use table::{ChangePlan, Condition, Write};

use super::queue_items::{name_key, name_row, queue_item, queue_key, queue_of, taken};
use crate::store::Store;
use crate::store::label_schema::schema_key;

impl Store {
    /// Creates a review queue. `owner` is `None` on a server without users. Takes one request, one
    /// more for the label schemas of the queue, and one more if the lease on the experiment has
    /// expired.
    pub async fn review_queue_create(
        &self,
        experiment: &Granted<ExperimentId>,
        new: &NewReviewQueue,
        owner: Option<&str>,
    ) -> Result<ReviewQueue> {
        let experiment = self.reviewed_experiment(**experiment).await?;
        self.review_queue_check_schemas(experiment, &new.schema_ids).await?;
        self.table
            .change("a review queue", |refused| async move {
                if refused.is_of(1) {
                    return Err(taken(&new.name));
                }
                let queue = ReviewQueueId::new(now_ms(), experiment, rand::rng().random());
                let item = queue_item(&queue, new, owner, queue.created());
                let created = queue_of(&item)?;
                let claim = Write::Put(name_row(&queue, &new.name), Condition::item_missing());
                Ok::<_, Error>(ChangePlan::Create(item, vec![claim], created))
            })
            .await
    }

    /// Returns the queue of a user, and creates it if it does not exist. Takes two requests, or
    /// three to create it, and one more if the lease on the experiment has expired.
    pub async fn review_queue_get_or_create(
        &self,
        experiment: &Granted<ExperimentId>,
        user: &str,
    ) -> Result<ReviewQueue> {
        let name = normalized_user(user);
        let new = NewReviewQueue::checked(ReviewQueueType::User, &name, &[], &[])?;
        self.reviewed_experiment(**experiment).await?;
        let mut attempts = self.table.attempts("the queue of a user");
        loop {
            attempts.next().await?;
            if let Some(found) = self.review_queue_named(**experiment, &name).await? {
                if found.queue_type == ReviewQueueType::User {
                    return Ok(found);
                }
                return Err(Error::new(
                    ErrorCode::ResourceAlreadyExists,
                    format!(
                        "A non-user queue named '{name}' already exists; cannot get-or-create a user queue with that \
                         name."
                    ),
                ));
            }
            match self.review_queue_create(experiment, &new, Some(&name)).await {
                // Another request has created the queue concurrently.
                Err(error) if error.code == ErrorCode::ResourceAlreadyExists => {}
                outcome => return outcome,
            }
        }
    }

    /// Returns the queue with this name, if there is one. Takes two requests.
    pub(super) async fn review_queue_named(&self, experiment: ExperimentId, name: &str) -> Result<Option<ReviewQueue>> {
        let claim = self.table.get(&name_key(experiment, name)).await?;
        let claim = claim.filter(|claim| claim.get(NAME) == Some(&name.to_lowercase()));
        let Some(queue) = claim.and_then(|claim| claim.get(QUEUE).and_then(ReviewQueueId::parse)) else {
            return Ok(None);
        };
        self.table.get(&queue_key(&queue)).await?.as_ref().map(queue_of).transpose()
    }

    /// Fails unless all of these label schemas belong to the experiment. Takes one request, or none
    /// if there are no schemas.
    pub(super) async fn review_queue_check_schemas(&self, experiment: ExperimentId, ids: &[String]) -> Result<()> {
        let parsed = |id: &str| LabelSchemaId::parse(id).filter(|schema| schema.experiment() == experiment);
        let keys: Vec<_> = ids.iter().filter_map(|id| parsed(id)).map(|schema| schema_key(&schema)).collect();
        let found = self.table.get_many(&keys).await?;
        let is_there =
            |id: &str| parsed(id).is_some_and(|schema| schema.is_default() || found.contains_key(&schema_key(&schema)));
        let missing: Vec<_> = ids.iter().filter(|id| !is_there(id)).collect();
        if missing.is_empty() {
            return Ok(());
        }
        let missing = python::repr_list(&missing);
        Err(Error::invalid(format!("Label schema id(s) {missing} not found for experiment '{experiment}'.")))
    }
}
