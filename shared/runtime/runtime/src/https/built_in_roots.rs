//! Mozilla's list of root certificates, for machines that have none.

use std::sync::LazyLock;

use aws_smithy_http_client::tls::{TlsContext, TrustStore};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// The list in PEM format. `None` if the machine has root certificates. Cached, because reading the
/// machine's certificates takes some ms.
static LIST: LazyLock<Option<String>> = LazyLock::new(|| {
    let has_own = !rustls_native_certs::load_native_certs().certs.is_empty();
    (!has_own).then(list)
});

/// Returns the TLS context with the built-in list. `None` if the machine's certificates are to be
/// used.
pub(crate) fn context() -> Result<Option<TlsContext>, String> {
    let Some(list) = LIST.as_ref() else { return Ok(None) };
    tracing::debug!("this machine has no root certificates, so the built-in ones are used");
    trusting(list).map(Some)
}

fn trusting(list: &str) -> Result<TlsContext, String> {
    let store = TrustStore::empty().with_pem_certificate(list.as_bytes());
    let context = TlsContext::builder().with_trust_store(store).build();
    context.map_err(|error| format!("the built-in root certificates cannot be read: {error}"))
}

fn list() -> String {
    webpki_root_certs::TLS_SERVER_ROOT_CERTS.iter().map(|root| as_text(root)).collect()
}

fn as_text(certificate: &[u8]) -> String {
    format!("-----BEGIN CERTIFICATE-----\n{}\n-----END CERTIFICATE-----\n", STANDARD.encode(certificate))
}

#[cfg(test)]
mod tests {
    use aws_smithy_http_client::Connector;

    use super::*;

    #[test]
    fn every_authority_in_the_program_can_be_read() {
        let list = list();
        assert!(list.matches("BEGIN CERTIFICATE").count() > 100);
        // Building a connector reads all certificates, and panics if one of them is invalid.
        let context = trusting(&list).unwrap();
        let _ = Connector::builder().tls_provider(crate::https::provider()).tls_context(context).build();
    }
}
