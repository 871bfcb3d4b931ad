//! Responses that are too large for a Lambda, in the bucket of the artifacts.

use std::sync::Arc;

use artifact_store::{ArtifactStore, BucketPrefix, OffloadedResponse};
use futures::future::BoxFuture;
use mlflow_api::Result;
use service::{LongResponse, ResponseOffload};

/// Stores responses next to the artifacts.
struct BucketOffload(BucketPrefix);

/// Returns the store for large responses, if the artifacts are in a bucket.
pub(crate) fn offload_to(artifacts: &ArtifactStore) -> Option<Arc<dyn ResponseOffload>> {
    artifacts.prefix().map(|prefix| Arc::new(BucketOffload(prefix.clone())) as Arc<dyn ResponseOffload>)
}

impl ResponseOffload for BucketOffload {
    fn put(&self, answer: LongResponse) -> BoxFuture<'_, Result<String>> {
        let LongResponse { body, content_type, encoding, disposition } = answer;
        Box::pin(self.0.offload(OffloadedResponse { body, content_type, encoding, disposition }))
    }
}
