//! Answers that no Lambda can carry, in the bucket of the artifacts, for as long as a client needs to read them. The bucket's lifecycle removes
//! them after a day.

use std::sync::Arc;

use futures::future::BoxFuture;
use mlflow_api::Result;
use rand::RngExt;
use service::{Aside, LongAnswer};

use crate::artifacts::Artifacts;
use crate::path::HIDDEN;
use crate::place::{DOWNLOAD, failed};
use crate::prefix::Prefix;

impl Artifacts {
    /// Where long answers are put: beside the artifacts, if these are in a bucket.
    #[must_use]
    pub fn aside(&self) -> Option<Arc<dyn Aside>> {
        self.prefix().map(|prefix| Arc::new(prefix.clone()) as Arc<dyn Aside>)
    }
}

impl Aside for Prefix {
    /// One request. The name is a random one, so that nobody finds it who was not told.
    fn put(&self, answer: LongAnswer) -> BoxFuture<'_, Result<String>> {
        Box::pin(async move {
            let LongAnswer { body, content_type, encoding, disposition } = answer;
            let key = self.key_of(&format!("{HIDDEN}/{:032x}", rand::rng().random::<u128>()));
            self.bucket().put(&key, body).await.map_err(failed)?;
            let mut sent_with = vec![("response-content-type", content_type.as_str())];
            sent_with.extend(encoding.as_deref().map(|encoding| ("response-content-encoding", encoding)));
            sent_with.extend(disposition.as_deref().map(|name| ("response-content-disposition", name)));
            self.bucket().presigned_get(&key, &sent_with, DOWNLOAD).await.map_err(failed)
        })
    }
}
