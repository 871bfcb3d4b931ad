//! An authorizer that says what a test says.

use std::sync::Arc;

use access::{Action, AdmitEverybody, Authorizer, Caller, Guarded, Visible};
use futures::future::BoxFuture;
use mlflow_api::{Result, Workspace};

/// The authorizer of tests in which nobody is refused.
pub fn everybody() -> Arc<dyn Authorizer> {
    Arc::new(AdmitEverybody)
}

/// Takes everybody for somebody, whose rights a test decides.
pub struct Judge<F> {
    visible: Visible,
    may: F,
}

impl<F: Fn(&(Action, Guarded)) -> bool + Send + Sync> Judge<F> {
    /// Lists show what is visible; everything else is asked one by one.
    pub fn new(visible: Visible, may: F) -> Self {
        Self { visible, may }
    }
}

impl<F: Fn(&(Action, Guarded)) -> bool + Send + Sync> Authorizer for Judge<F> {
    fn authenticate<'a>(&'a self, _: &'a http::HeaderMap) -> BoxFuture<'a, Result<Caller>> {
        Box::pin(async { Ok(Caller::Somebody) })
    }

    fn authorize<'a>(
        &'a self,
        _: &'a Caller,
        _: &'a Workspace,
        wanted: &'a [(Action, Guarded)],
    ) -> BoxFuture<'a, Result<Vec<bool>>> {
        Box::pin(async move { Ok(wanted.iter().map(&self.may).collect()) })
    }

    fn visible<'a>(&'a self, _: &'a Caller, _: &'a Workspace) -> BoxFuture<'a, Result<Visible>> {
        Box::pin(async { Ok(self.visible.clone()) })
    }
}
