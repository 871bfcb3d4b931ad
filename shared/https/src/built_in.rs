//! Mozilla's list of authorities, for a machine that has none.

use std::sync::LazyLock;

use aws_smithy_http_client::tls::{TlsContext, TrustStore};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// The list, as text; `None` if the machine has one. Reading a machine's list takes some ms, so it
/// is read once.
static LIST: LazyLock<Option<String>> = LazyLock::new(|| {
    let has_own = !rustls_native_certs::load_native_certs().certs.is_empty();
    (!has_own).then(|| webpki_root_certs::TLS_SERVER_ROOT_CERTS.iter().map(|root| as_text(root)).collect())
});

/// The list that a client is to use in place of the machine's.
pub(crate) fn context() -> Result<Option<TlsContext>, String> {
    let Some(list) = LIST.as_ref() else { return Ok(None) };
    tracing::debug!("this machine trusts no authorities, so those in the program are used");
    let store = TrustStore::empty().with_pem_certificate(list.as_bytes());
    let context = TlsContext::builder().with_trust_store(store).build();
    context.map(Some).map_err(|error| format!("the authorities in this program cannot be read: {error}"))
}

fn as_text(certificate: &[u8]) -> String {
    format!("-----BEGIN CERTIFICATE-----\n{}\n-----END CERTIFICATE-----\n", STANDARD.encode(certificate))
}
