//! Declares the domain: its function in the stack, and how it is mounted.

use access::Permission;
use domain::{Domain, EndpointInfo, Environment, EnvironmentSetting, Function, MountFailure, MountedDomain};
use futures::future::{BoxFuture, ready};
use service::InternalCalls;

/// MLflow's user interface. The function serves files from its layer and has no permissions in AWS.
pub const DOMAIN: Domain = Domain::with_router(
    Function {
        name: "ui",
        resource: "Ui",
        description: "MLflow's user interface: serves files from its layer, and nothing else.",
        paths: &["/", "/static-files/{*path}"],
        settings: &[EnvironmentSetting::ArtifactsOrigin],
        timeout: 10,
        layer: Some("UiLayer"),
        ..Function::BASE
    },
    endpoints,
    mount,
);

fn endpoints() -> Vec<EndpointInfo> {
    let endpoint = |path: &str| {
        // As in MLflow, the page requires signing in, but the files of the user interface can be
        // loaded without it.
        let permission = if path == "/" { Permission::SignedIn } else { Permission::Open };
        EndpointInfo { method: "GET", paths: vec![path.to_owned()], permission }
    };
    crate::PATHS.into_iter().map(endpoint).collect()
}

#[expect(clippy::needless_pass_by_value, reason = "as other domains are mounted")]
fn mount(around: Environment) -> BoxFuture<'static, Result<MountedDomain, MountFailure>> {
    let files = around.ui.as_ref().ok_or_else(|| MountFailure::from("there are no files of the user interface"));
    let router = files.and_then(|files| match &files.directory {
        Some(directory) => Ok(crate::router(directory, files.bucket.as_deref())),
        None => crate::embedded_router(files.bucket.as_deref())
            .ok_or_else(|| MountFailure::from("this program contains no user interface")),
    });
    let router = router.map(|router| if around.has_workspaces { router } else { service::reject_workspaces(router) });
    let router = router.map(|router| service::require_sign_in(router, around.authorizer.clone()));
    Box::pin(ready(router.map(|router| MountedDomain { router, calls: InternalCalls::default() })))
}
