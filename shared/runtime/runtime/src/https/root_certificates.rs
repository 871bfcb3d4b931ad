//! Root certificates for TLS connections that no SDK opens.

use rustls_pki_types::CertificateDer;

/// Returns the root certificates of the machine. If it has none, returns the built-in ones, which
/// only programs with the feature `built-in-roots` have.
///
/// Reading the machine's certificates takes some ms, so callers should cache the result.
#[must_use]
pub fn root_certificates() -> Vec<CertificateDer<'static>> {
    let of_machine = rustls_native_certs::load_native_certs();
    for error in &of_machine.errors {
        tracing::debug!(%error, "a root certificate of this machine cannot be read");
    }
    if of_machine.certs.is_empty() { built_in() } else { of_machine.certs }
}

#[cfg(feature = "built-in-roots")]
fn built_in() -> Vec<CertificateDer<'static>> {
    webpki_root_certs::TLS_SERVER_ROOT_CERTS.to_vec()
}

#[cfg(not(feature = "built-in-roots"))]
fn built_in() -> Vec<CertificateDer<'static>> {
    Vec::new()
}
