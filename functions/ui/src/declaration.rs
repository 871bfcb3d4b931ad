//! Declares the domain: its function in the stack, and how it is mounted.

use access::Permission;
use domain::{Domain, Endpoint, Failure, Function, Mounted, Setting, Surroundings};
use futures::future::{BoxFuture, ready};
use service::Calls;

/// MLflow's user interface. The function serves files from its layer and has no other rights.
pub const DOMAIN: Domain = Domain::with_router(
    Function {
        name: "ui",
        resource: "Ui",
        description: "MLflow's user interface: serves files from its layer, and nothing else.",
        paths: &["/", "/static-files/{*path}"],
        settings: &[Setting::ArtifactsOrigin],
        timeout: 10,
        layer: Some("UiLayer"),
        ..Function::BASE
    },
    endpoints,
    mount,
);

fn endpoints() -> Vec<Endpoint> {
    let endpoint = |path: &str| {
        // As in MLflow, a client that has to sign in for a page may still load the files of the
        // user interface.
        let permission = if path == "/" { Permission::SignedIn } else { Permission::Open };
        Endpoint { method: "GET", paths: vec![path.to_owned()], permission }
    };
    crate::PATHS.into_iter().map(endpoint).collect()
}

#[expect(clippy::needless_pass_by_value, reason = "as other domains are mounted")]
fn mount(around: Surroundings) -> BoxFuture<'static, Result<Mounted, Failure>> {
    let files = around.ui.as_ref().ok_or_else(|| Failure::from("there are no files of the user interface"));
    let router = files.and_then(|files| match &files.directory {
        Some(directory) => Ok(crate::router(directory, files.bucket.as_deref())),
        None => crate::embedded_router(files.bucket.as_deref())
            .ok_or_else(|| Failure::from("this program contains no user interface")),
    });
    let router = router.map(|router| if around.has_workspaces { router } else { service::without_workspaces(router) });
    let router = router.map(|router| service::signed_in(router, around.authorizer.clone()));
    Box::pin(ready(router.map(|router| Mounted { router, calls: Calls::default() })))
}
