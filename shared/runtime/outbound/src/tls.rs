//! TLS to a host, whose certificate has to be valid for the host's name.

use std::io;
use std::sync::{Arc, OnceLock};

use rustls::pki_types::{CertificateDer, DnsName, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::error::OutboundError;
use crate::url::OutboundUrl;

/// The configuration of TLS. The machine's root certificates are read when they are first needed,
/// which takes some ms.
#[derive(Default)]
pub(crate) struct Tls {
    config: OnceLock<Arc<ClientConfig>>,
}

impl Tls {
    /// Returns a configuration that trusts these root certificates instead of those of the machine.
    pub(crate) fn trusting(roots: &[CertificateDer<'static>]) -> Result<Self, OutboundError> {
        Ok(Self { config: OnceLock::from(config(roots)?) })
    }

    pub(crate) async fn connect(
        &self,
        url: &OutboundUrl,
        stream: TcpStream,
    ) -> Result<TlsStream<TcpStream>, OutboundError> {
        let name = server_name(url).ok_or_else(|| OutboundError::Tls("the host name is invalid".to_owned()))?;
        let connector = TlsConnector::from(self.config()?);
        connector.connect(name, stream).await.map_err(|error: io::Error| OutboundError::Tls(error.to_string()))
    }

    fn config(&self) -> Result<Arc<ClientConfig>, OutboundError> {
        if let Some(config) = self.config.get() {
            return Ok(Arc::clone(config));
        }
        let config = config(&runtime::https::root_certificates())?;
        Ok(Arc::clone(self.config.get_or_init(|| config)))
    }
}

fn config(roots: &[CertificateDer<'static>]) -> Result<Arc<ClientConfig>, OutboundError> {
    let mut store = RootCertStore::empty();
    // A machine may trust certificates that rustls does not support. They are left out.
    store.add_parsable_certificates(roots.iter().cloned());
    if store.is_empty() {
        return Err(OutboundError::Setup("this machine has no root certificates".to_owned()));
    }
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let versions = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let versions = versions.map_err(|error| OutboundError::Setup(error.to_string()))?;
    let mut config = versions.with_root_certificates(store).with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

/// Returns the name that the certificate has to contain. The trailing dot of a fully qualified name
/// is not part of it.
fn server_name(url: &OutboundUrl) -> Option<ServerName<'static>> {
    if let Some(address) = url.literal() {
        return Some(ServerName::IpAddress(address.into()));
    }
    let host = url.host();
    let name = DnsName::try_from(host.strip_suffix('.').unwrap_or(host).to_owned()).ok()?;
    Some(ServerName::DnsName(name))
}
