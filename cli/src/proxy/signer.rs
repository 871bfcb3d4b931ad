//! Signs requests to API Gateway (AWS Signature Version 4, service `execute-api`).

use std::time::{Duration, SystemTime};

use aws_credential_types::Credentials;
use aws_credential_types::provider::{ProvideCredentials, SharedCredentialsProvider};
use http::HeaderMap;
use tokio::sync::Mutex;
use tokio::time::timeout;

use crate::credentials::with_causes;
use crate::proxy::refusal::ProxyRefusal;
use crate::signing::{self, Signature};

const SERVICE: &str = "execute-api";
/// Time before their expiry at which credentials are renewed.
const RENEWAL_MARGIN: Duration = Duration::from_mins(5);
/// Timeout for obtaining credentials. The program or server that provides them may hang.
const CREDENTIALS_TIMEOUT: Duration = Duration::from_mins(1);

/// Signs with cached credentials, which are renewed shortly before they expire.
pub(crate) struct RequestSigner {
    provider: SharedCredentialsProvider,
    region: String,
    last: Mutex<Option<Credentials>>,
}

impl RequestSigner {
    pub(crate) fn new(provider: SharedCredentialsProvider, region: String) -> Self {
        Self { provider, region, last: Mutex::default() }
    }

    /// Returns the region that signatures are made for.
    pub(crate) fn region(&self) -> &str {
        &self.region
    }

    /// Returns the headers that sign a request. All given headers are signed, and `host` is added.
    pub(crate) async fn sign(
        &self,
        method: &str,
        url: &str,
        headers: &HeaderMap,
        body: &[u8],
    ) -> Result<Vec<(String, String)>, ProxyRefusal> {
        let signature = Signature { service: SERVICE, region: &self.region, time: SystemTime::now() };
        let headers = headers.iter().filter_map(|(name, value)| Some((name.as_str(), value.to_str().ok()?)));
        signing::headers(self.credentials().await?, signature, method, url, headers, body)
            .map_err(ProxyRefusal::unsigned)
    }

    /// Returns credentials that have not expired.
    async fn credentials(&self) -> Result<Credentials, ProxyRefusal> {
        // One request obtains new credentials, and all others wait for it.
        let mut last = self.last.lock().await;
        if let Some(known) = last.as_ref().filter(|known| is_good_for(known, RENEWAL_MARGIN)) {
            return Ok(known.clone());
        }
        match timeout(CREDENTIALS_TIMEOUT, self.provider.provide_credentials()).await {
            Ok(Ok(new)) => *last = Some(new),
            Ok(Err(error)) => tracing::warn!(error = with_causes(&error), "cannot renew the credentials"),
            Err(_) => tracing::warn!("renewing the credentials timed out"),
        }
        let known = last.as_ref().ok_or(ProxyRefusal::NoCredentials)?;
        if is_good_for(known, Duration::ZERO) { Ok(known.clone()) } else { Err(ProxyRefusal::Expired) }
    }
}

fn is_good_for(credentials: &Credentials, time: Duration) -> bool {
    credentials.expiry().is_none_or(|expiry| expiry > SystemTime::now() + time)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use aws_credential_types::provider::error::CredentialsError;
    use aws_credential_types::provider::future::ProvideCredentials as Provided;

    use super::*;

    /// Provider that returns credentials once, and counts its calls.
    #[derive(Debug)]
    struct Once(Option<Credentials>, Arc<AtomicUsize>);

    impl ProvideCredentials for Once {
        fn provide_credentials<'a>(&'a self) -> Provided<'a>
        where
            Self: 'a,
        {
            let is_first = self.1.fetch_add(1, Ordering::Relaxed) == 0;
            let found = self.0.clone().filter(|_| is_first);
            Provided::ready(found.ok_or_else(CredentialsError::not_loaded_no_source))
        }
    }

    /// Returns the outcomes of two signatures, and how often credentials were requested.
    async fn outcomes(credentials: Option<Credentials>) -> (Vec<Result<(), ProxyRefusal>>, usize) {
        let asked = Arc::<AtomicUsize>::default();
        let provider = SharedCredentialsProvider::new(Once(credentials, Arc::clone(&asked)));
        let signer = RequestSigner::new(provider, "eu-central-1".to_owned());
        let mut found = Vec::new();
        for _ in 0..2 {
            found.push(signer.sign("GET", "https://a.example/", &HeaderMap::new(), b"").await.map(drop));
        }
        (found, asked.load(Ordering::Relaxed))
    }

    fn expiring(expiry: SystemTime) -> Credentials {
        Credentials::new("id", "secret", None, Some(expiry), "test")
    }

    #[tokio::test]
    async fn credentials_are_kept_while_they_are_good_and_no_longer() {
        let now = SystemTime::now();
        for (expiry, times) in [(now + Duration::from_hours(1), 1), (now + Duration::from_mins(2), 2)] {
            let (found, asked) = outcomes(Some(expiring(expiry))).await;
            assert!(found.iter().all(Result::is_ok), "{found:?}");
            assert_eq!(asked, times);
        }
        let (found, _) = outcomes(Some(expiring(now - Duration::from_secs(1)))).await;
        assert!(found.iter().all(|outcome| matches!(outcome, Err(ProxyRefusal::Expired))), "{found:?}");
        let (found, _) = outcomes(None).await;
        assert!(found.iter().all(|outcome| matches!(outcome, Err(ProxyRefusal::NoCredentials))), "{found:?}");
    }
}
