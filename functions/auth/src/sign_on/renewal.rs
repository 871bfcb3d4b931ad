//! Renews sessions with the provider that opened them.

use std::time::Duration;

use identity_providers::{
    Claims, ClaimsError, Configuration, Memberships, Provider, ProviderClient, RefreshOutcome, RefreshToken,
    RefreshTokenPlace, open, seal,
};
use mlflow_api::{Error, Result};
use permissions::UserSecret;
use runtime::clock::Moment;
use table::UsageMeter;

use super::clients::client;
use super::configuration::configuration;
use super::confirmation::confirmed_until;
use super::failure::SignInFailure;
use crate::store::{ClaimedRenewal, RenewalClaim, Store, renew_by_after};

/// Maximum time in seconds by which a session is renewed ahead of time. Longer than the lead time of
/// the page's script (`session_renewal.js`).
const MAX_AHEAD_SECONDS: u32 = 90;
/// Pause before checking whether another process has renewed the session.
const POLL_INTERVAL: Duration = Duration::from_millis(250);
/// Maximum time to wait for another process. Providers usually respond within a second.
const MAX_WAIT: Duration = Duration::from_secs(10);

/// The outcome of a renewal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RenewalOutcome {
    /// The session is valid, and has to be renewed before this time, in seconds since 1970.
    Renewed(i64),
    /// The session is valid, and does not have to be renewed, because it was opened with a password.
    NotRenewable,
    /// The session was not renewed. With a time: the provider cannot be reached, and the session stays
    /// valid until then, in seconds since 1970. Without one: another process is still renewing it.
    Unavailable(Option<i64>),
    /// The session has ended. The user has to sign in again.
    Ended,
}

/// Renews a session if the renewal is due. If another process is renewing it, waits for up to 10 s. The
/// change is in effect in every process after the lease. Takes one request if the renewal is not due.
/// Otherwise, takes about six requests to the table, and up to four to the provider.
///
/// # Errors
/// Returns an error if the table cannot be read or written.
pub(crate) async fn renew(store: &Store, secret: &UserSecret) -> Result<RenewalOutcome> {
    let (store, secret) = (store.clone(), secret.clone());
    let meter = UsageMeter::of_task().unwrap_or_default();
    // The renewal runs in its own task, which continues if the browser closes the page. Otherwise,
    // the new refresh token could be lost, and with it the session in all other tabs.
    let renewed = tokio::spawn(async move { meter.counting(Box::pin(claim_and_present(&store, &secret))).await });
    renewed.await.map_err(Error::internal)?
}

async fn claim_and_present(store: &Store, secret: &UserSecret) -> Result<RenewalOutcome> {
    let configuration = configuration(store).await?;
    let minutes = configuration.as_ref().map_or(u32::MAX, |found| found.renewal_minutes);
    // At most a third of the interval. Otherwise, a session with a short interval would always be due.
    let ahead = i64::from(minutes.saturating_mul(20).min(MAX_AHEAD_SECONDS));
    let begin = Moment::now();
    loop {
        match store.renewal_claim(secret, ahead).await? {
            RenewalClaim::Claimed(claimed) => {
                let Some(configuration) = &configuration else { return ended(store, secret, "no configuration").await };
                return present(store, secret, configuration, claimed).await;
            }
            RenewalClaim::NotDue { renew_by: Some(renew_by) } => return Ok(RenewalOutcome::Renewed(renew_by)),
            RenewalClaim::NotDue { renew_by: None } => return Ok(RenewalOutcome::NotRenewable),
            RenewalClaim::Ended => return Ok(RenewalOutcome::Ended),
            RenewalClaim::Busy { .. } if begin.age() >= MAX_WAIT => return Ok(RenewalOutcome::Unavailable(None)),
            RenewalClaim::Busy { .. } => runtime::clock::sleep(POLL_INTERVAL).await,
        }
    }
}

/// Presents the refresh token of a claimed renewal, and ends the claim.
async fn present(
    store: &Store,
    secret: &UserSecret,
    configuration: &Configuration,
    claimed: ClaimedRenewal,
) -> Result<RenewalOutcome> {
    let Some(provider) = configuration.provider(&claimed.provider) else {
        return ended(store, secret, "its provider is not configured").await;
    };
    let client = match client(store.sign_on(), provider).await {
        Ok(client) => client,
        Err(failure) => {
            if let SignInFailure::Error(error) = failure {
                tracing::error!(%error, provider = provider.name, "a session cannot be renewed");
            }
            return postponed(store, configuration, &claimed, false).await;
        }
    };
    let digest = claimed.session_digest();
    let place = RefreshTokenPlace { provider: &provider.name, session: &digest };
    // The token cannot be decrypted after the client secret was replaced.
    let Ok(token) = open(client.secret(), place, &claimed.sealed) else {
        return ended(store, secret, "its refresh token cannot be decrypted").await;
    };
    match client.refresh(&token, &claimed.person).await {
        RefreshOutcome::Renewed { claims, refresh_token } => {
            let renewed = Renewed { store, secret, configuration, provider, client: &client, claimed: &claimed };
            renewed.complete(&claims, refresh_token.as_ref()).await
        }
        RefreshOutcome::Refused(reason) => ended(store, secret, &reason).await,
        RefreshOutcome::NotSent(reason) => {
            tracing::warn!(provider = provider.name, reason, "a session cannot be renewed");
            // The provider may have refused the client secret.
            store.sign_on().forget_client_secret(&provider.name);
            postponed(store, configuration, &claimed, false).await
        }
        RefreshOutcome::Unavailable(reason) => {
            tracing::warn!(provider = provider.name, reason, "a session cannot be renewed");
            postponed(store, configuration, &claimed, true).await
        }
    }
}

/// A renewal that the provider has confirmed.
struct Renewed<'a> {
    store: &'a Store,
    secret: &'a UserSecret,
    configuration: &'a Configuration,
    provider: &'a Provider,
    client: &'a ProviderClient,
    claimed: &'a ClaimedRenewal,
}

impl Renewed<'_> {
    /// Applies the rules of the provider and ends the claim.
    async fn complete(&self, claims: &Claims, refresh_token: Option<&RefreshToken>) -> Result<RenewalOutcome> {
        let Self { store, configuration, claimed, .. } = self;
        let memberships = match Memberships::of(self.provider, claims) {
            Ok(memberships) => memberships,
            Err(error) => {
                if matches!(error, ClaimsError::NotAdmitted { .. }) {
                    store.confirmation_withdraw(claimed.user(), &claimed.person).await?;
                }
                return ended(store, self.secret, &error.to_string()).await;
            }
        };
        let digest = claimed.session_digest();
        let place = RefreshTokenPlace { provider: &self.provider.name, session: &digest };
        let sealed = refresh_token.map(|token| seal(self.client.secret(), place, token)).transpose();
        let sealed = sealed.map_err(Error::internal)?;
        let until = confirmed_until(configuration);
        match store.memberships_apply(claimed.user(), &claimed.person, &memberships, until).await {
            Ok(true) => {}
            Ok(false) => return ended(store, self.secret, "the user was disabled or changed").await,
            Err(error) if error.code.http_status() == 400 => return ended(store, self.secret, &error.message).await,
            Err(error) => {
                // Stores the new refresh token, which would be lost otherwise. The renewal remains due.
                store.renewal_complete(claimed, claimed.renew_by, sealed).await?;
                return Err(error);
            }
        }
        let renew_by = renew_by_after(configuration.renewal_minutes);
        let is_open = store.renewal_complete(claimed, renew_by, sealed).await?;
        Ok(if is_open { RenewalOutcome::Renewed(renew_by) } else { RenewalOutcome::Ended })
    }
}

/// Postpones a renewal because the provider cannot be reached.
async fn postponed(
    store: &Store,
    configuration: &Configuration,
    claimed: &ClaimedRenewal,
    was_sent: bool,
) -> Result<RenewalOutcome> {
    let grace = i64::from(configuration.grace_minutes) * 60;
    let renew_by = store.renewal_postpone(claimed, grace, was_sent).await?;
    Ok(renew_by.map_or(RenewalOutcome::Ended, |renew_by| RenewalOutcome::Unavailable(Some(renew_by))))
}

/// Ends a session that cannot be renewed, and logs the reason.
async fn ended(store: &Store, secret: &UserSecret, reason: &str) -> Result<RenewalOutcome> {
    tracing::warn!(target: "audit", event = "renewal refused", by = ?secret.user().as_str(), reason);
    store.renewal_end(secret).await?;
    Ok(RenewalOutcome::Ended)
}
