//! HTTPS clients for AWS services.
//!
//! A machine usually has root certificates; an empty container has none. With the feature
//! `built-in-roots`, the program contains Mozilla's list, and uses it if the machine has no
//! certificates. The machine's own certificates take precedence, since they may include the
//! certificate of a proxy. The table, the bucket and the lookup of credentials all use the clients
//! of this crate, so they trust the same certificates.

#[cfg(feature = "built-in-roots")]
mod built_in_roots;
mod root_certificates;

use std::time::Duration;

use aws_smithy_http_client::tls::Provider;
use aws_smithy_http_client::tls::rustls_provider::CryptoMode;
use aws_smithy_http_client::{Builder, Connector, ConnectorBuilder};
use aws_smithy_runtime_api::client::http::{HttpConnectorSettings, SharedHttpClient, SharedHttpConnector};
pub use root_certificates::root_certificates;

/// Returns a client for an AWS SDK. Returns `None` if the default client of the SDK is sufficient.
///
/// # Errors
/// The built-in root certificates cannot be read.
pub fn client() -> Result<Option<SharedHttpClient>, String> {
    let Some(context) = context()? else { return Ok(None) };
    Ok(Some(Builder::new().tls_provider(provider()).tls_context(context).build_https()))
}

/// Returns a connector for requests that are not sent by an SDK.
///
/// # Errors
/// The built-in root certificates cannot be read.
pub fn connector() -> Result<SharedHttpConnector, String> {
    build(Connector::builder(), HttpConnectorSettings::builder().build())
}

/// Returns a connector for requests that must not be sent twice. It opens a connection for each
/// request, because a pooled one may have been closed by the server in the meantime, and it would be
/// uncertain whether the request was executed. If no connection is established within
/// `connect_timeout`, the request was certainly not sent.
///
/// # Errors
/// The built-in root certificates cannot be read.
pub fn connector_without_pool(connect_timeout: Duration) -> Result<SharedHttpConnector, String> {
    let settings = HttpConnectorSettings::builder().connect_timeout(connect_timeout).build();
    build(Connector::builder().pool_max_idle_per_host(0), settings)
}

fn build(builder: ConnectorBuilder, settings: HttpConnectorSettings) -> Result<SharedHttpConnector, String> {
    let builder = builder.connector_settings(settings).tls_provider(provider());
    let builder = match context()? {
        Some(context) => builder.tls_context(context),
        None => builder,
    };
    Ok(SharedHttpConnector::new(builder.build()))
}

fn provider() -> Provider {
    Provider::Rustls(CryptoMode::AwsLc)
}

#[cfg(feature = "built-in-roots")]
use built_in_roots::context;

#[cfg(not(feature = "built-in-roots"))]
#[expect(clippy::unnecessary_wraps, reason = "with built-in roots, it can fail")]
fn context() -> Result<Option<aws_smithy_http_client::tls::TlsContext>, String> {
    Ok(None)
}
