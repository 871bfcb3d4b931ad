//! Renewals of sessions with the provider that opened them.
//!
//! A refresh token may be presented only once, because providers with reuse detection end all
//! sessions of the person otherwise. So a process **claims** a renewal by a conditional write before
//! it presents the token, and no other process presents the same token. The claim has a random id,
//! by which a process recognizes its own claim if the response to the write was lost.
//!
//! A claim ends in one of these ways:
//!
//! - [`renewal_complete`](Store::renewal_complete): the provider has answered.
//! - [`renewal_postpone`](Store::renewal_postpone): the provider cannot be reached. The token is
//!   presented again later only if it was certainly not sent.
//! - [`renewal_end`](Store::renewal_end): the provider refuses the person.
//! - None of these, because the process has died. The token may have been presented, so it is never
//!   presented again. The session ends at the first renewal after the claim has expired, and the
//!   user signs in again.
//!
//! Ending a claim increments the row's generation. A claim is written on condition that the
//! generation has not changed since the row was read, so a duplicate of the write that arrives after
//! the claim has ended has no effect.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use identity_providers::Person;
use key_schema::attributes::{CLAIMED, CLAIMED_UNTIL, GENERATION, GRACE_UNTIL, PROVIDER, REFRESH, RENEW_BY};
use key_schema::{Key, access_rows};
use mlflow_api::{Error, Result, UserName};
use permissions::{Account, LEASE, SessionState, UserSecret, session_identity, session_key, session_state};
use rand::RngExt;
use table::{Condition, Failure, Item, Update, Write, bytes, number, text};

use super::Store;
use super::identity_rows::person_of;
use super::renewal_rows::{check_sealed, renewal_key};
use super::times::now_seconds;

/// How long a claim is valid, in seconds. Longer than a process can take for a renewal: a function
/// times out after 29 s.
pub const CLAIM_SECONDS: i64 = 30;
/// The time in seconds after which a postponed renewal is due again.
pub const POSTPONEMENT_SECONDS: i64 = 300;

/// The result of claiming a renewal.
#[derive(Debug)]
pub enum RenewalClaim {
    /// This process has to present the refresh token, and to end the claim.
    Claimed(ClaimedRenewal),
    /// Another process is renewing the session. Until `renew_by`, the session is valid anyway.
    Busy {
        /// When the session has to be renewed, in seconds since 1970.
        renew_by: i64,
    },
    /// The session is valid and need not be renewed yet, or cannot be renewed at all.
    NotDue {
        /// When the session has to be renewed, in seconds since 1970. `None` for a session that was
        /// opened with a password.
        renew_by: Option<i64>,
    },
    /// The session has ended. The user has to sign in again.
    Ended,
}

/// A renewal that this process has claimed.
#[derive(Clone, Debug)]
pub struct ClaimedRenewal {
    secret: UserSecret,
    claim: String,
    grace_until: Option<i64>,
    /// When the session has to be renewed, in seconds since 1970.
    pub renew_by: i64,
    /// The person whose identity the session is bound to. The provider has to confirm this person.
    pub person: Person,
    /// Name of the provider.
    pub provider: String,
    /// The refresh token, encrypted for the digest of the session.
    pub sealed: Vec<u8>,
}

impl ClaimedRenewal {
    /// Returns the name of the user.
    #[must_use]
    pub fn user(&self) -> &UserName {
        self.secret.user()
    }

    /// Returns the digest of the session, which the refresh token is encrypted for.
    #[must_use]
    pub fn session_digest(&self) -> String {
        self.secret.digest()
    }

    fn renewal_key(&self) -> Key {
        renewal_key(self.secret.user(), &self.secret.digest())
    }

    /// Starts the update that ends the claim. It fails if this process no longer has the claim.
    fn end(&self) -> Update {
        Update::new(self.renewal_key())
            .remove(CLAIMED)
            .remove(CLAIMED_UNTIL)
            .add(GENERATION, number(1))
            .only_if(Condition::Equals(CLAIMED.into(), text(self.claim.as_str())))
    }

    fn session(&self) -> Update {
        Update::new(session_key(self.secret.user(), &self.secret.digest()))
    }
}

/// A session that may be due for renewal.
struct RenewableSession {
    renew_by: i64,
    person: Person,
    renewal: Option<Item>,
}

impl Store {
    /// Claims the renewal of a session, if the session has to be renewed within `ahead` seconds.
    /// Takes two requests, and one if the renewal is not due.
    ///
    /// # Errors
    /// Returns an error if the table cannot be read or written. If the response to the write was
    /// lost and no attempt succeeded, the renewal may be claimed although no process presents the
    /// token. The session then ends after [`CLAIM_SECONDS`].
    pub async fn renewal_claim(&self, secret: &UserSecret, ahead: i64) -> Result<RenewalClaim> {
        let claim = URL_SAFE_NO_PAD.encode(rand::rng().random::<[u8; 16]>());
        let mut attempts = self.access.attempts("a session");
        loop {
            attempts.next().await?;
            let session = match self.renewable_session(secret).await? {
                Ok(session) => session,
                Err(claim) => return Ok(claim),
            };
            let (now, renew_by) = (now_seconds(), session.renew_by);
            if now < renew_by.saturating_sub(ahead) {
                return Ok(RenewalClaim::NotDue { renew_by: Some(renew_by) });
            }
            let Some(renewal) = session.renewal.as_ref().filter(|renewal| renewal.has(REFRESH)) else {
                // There is no token that could be presented.
                if now < renew_by {
                    return Ok(RenewalClaim::NotDue { renew_by: Some(renew_by) });
                }
                self.renewal_end(secret).await?;
                return Ok(RenewalClaim::Ended);
            };
            if renewal.has(CLAIMED) {
                if renewal.get(CLAIMED_UNTIL).is_some_and(|end| now < end) {
                    return Ok(RenewalClaim::Busy { renew_by });
                }
                if self.abandoned_end(secret, renewal).await? {
                    return Ok(RenewalClaim::Ended);
                }
                continue;
            }
            let update = Update::new(renewal_key(secret.user(), &secret.digest()))
                .set(CLAIMED, text(claim.as_str()))
                .set(CLAIMED_UNTIL, number(now + CLAIM_SECONDS))
                .only_if(Condition::Missing(CLAIMED.into()).and(Condition::unchanged(renewal, GENERATION)));
            let claimed = match self.access.update(&update).await {
                Ok(item) => item,
                // The response to an earlier attempt was lost, and the claim is our own.
                Err(Failure::Refused { item: Some(item), .. }) if item.get(CLAIMED) == Some(claim.as_str()) => item,
                Err(Failure::Refused { .. }) => continue,
                Err(failure) => return Err(failure.into()),
            };
            return claimed_renewal(secret, claim, &session, &claimed).map(RenewalClaim::Claimed);
        }
    }

    /// Ends a claim after the provider has confirmed the person. `renew_by` is when the session has
    /// to be renewed again, in seconds since 1970. `sealed` is the new refresh token, encrypted for
    /// the same session, or `None` if the provider issued no new one. Returns `false` if the session
    /// has ended in the meantime. Other processes may refuse an overdue session until the lease has
    /// expired, so the response to the page has to wait for it. Takes one request.
    ///
    /// # Errors
    /// Returns an error if the table cannot be written. If it is unknown whether the write took
    /// effect, the next call of [`renewal_claim`](Self::renewal_claim) shows it.
    pub async fn renewal_complete(
        &self,
        claimed: &ClaimedRenewal,
        renew_by: i64,
        sealed: Option<Vec<u8>>,
    ) -> Result<bool> {
        let renewal = claimed.end().remove(GRACE_UNTIL);
        let renewal = match sealed {
            Some(sealed) => {
                check_sealed(&sealed)?;
                renewal.set(REFRESH, bytes(sealed))
            }
            None => renewal,
        };
        let session = claimed.session().set(RENEW_BY, number(renew_by));
        self.renewal_write(&[Write::Update(renewal), Write::Update(session)]).await
    }

    /// Ends a claim because the provider cannot be reached, and postpones the renewal by
    /// [`POSTPONEMENT_SECONDS`], but by no more than `grace` seconds after the time at which the
    /// session had to be renewed first. If the token `was_sent`, it is never presented again: the
    /// session remains valid for the grace period, and ends after it. Returns when the session has
    /// to be renewed, in seconds since 1970, or `None` if it has ended. As for
    /// [`renewal_complete`](Self::renewal_complete), the response has to wait for the lease. Takes
    /// one request, and three if the grace period is over.
    ///
    /// # Errors
    /// Returns an error if the table cannot be written.
    pub async fn renewal_postpone(&self, claimed: &ClaimedRenewal, grace: i64, was_sent: bool) -> Result<Option<i64>> {
        let now = now_seconds();
        let grace_until = claimed.grace_until.unwrap_or_else(|| claimed.renew_by.saturating_add(grace));
        if grace_until <= now {
            self.renewal_end(&claimed.secret).await?;
            return Ok(None);
        }
        let next = if was_sent { grace_until } else { grace_until.min(now + POSTPONEMENT_SECONDS) };
        let renew_by = next.max(claimed.renew_by);
        let renewal = claimed.end().set(GRACE_UNTIL, number(grace_until));
        let renewal = if was_sent { renewal.remove(REFRESH) } else { renewal };
        let session = claimed.session().set(RENEW_BY, number(renew_by));
        let is_open = self.renewal_write(&[Write::Update(renewal), Write::Update(session)]).await?;
        Ok(is_open.then_some(renew_by))
    }

    /// Ends a session and its renewal in every process, because its provider refuses the person or it
    /// cannot be renewed. Takes two requests.
    ///
    /// # Errors
    /// Returns an error if the table cannot be written.
    pub async fn renewal_end(&self, secret: &UserSecret) -> Result<()> {
        tracing::info!(target: "audit", event = "session not renewed", by = ?secret.user().as_str());
        self.session_end(secret).await
    }

    /// Reads what a renewal depends on. Returns the answer to the claim instead if the session cannot
    /// be renewed.
    async fn renewable_session(
        &self,
        secret: &UserSecret,
    ) -> Result<std::result::Result<RenewableSession, RenewalClaim>> {
        let digest = secret.digest();
        let user_key = access_rows::User::key(secret.user());
        let session_key = session_key(secret.user(), &digest);
        let renewal_key = renewal_key(secret.user(), &digest);
        let mut read = self.access.get_many(&[user_key.clone(), session_key.clone(), renewal_key.clone()]).await?;
        let account = read.get(&user_key).map(Account::of).transpose()?.filter(|account| !account.is_disabled);
        let Some((session, account)) = read.get(&session_key).zip(account) else {
            return Ok(Err(RenewalClaim::Ended));
        };
        if session_state(session, &account, self.authorizer.password_policy()) == SessionState::Ended {
            return Ok(Err(RenewalClaim::Ended));
        }
        let identity = session_identity(session).and_then(|identity| account.identities.get(identity));
        let Some((renew_by, identity)) = session.get(RENEW_BY).zip(identity) else {
            return Ok(Err(RenewalClaim::NotDue { renew_by: None }));
        };
        let person = person_of(identity).ok_or_else(|| Error::internal("an identity is unreadable"))?;
        Ok(Ok(RenewableSession { renew_by, person, renewal: read.remove(&renewal_key) }))
    }

    /// Ends a session whose renewal was claimed by a process that has died. Returns `false` if the
    /// claim has ended in the meantime.
    async fn abandoned_end(&self, secret: &UserSecret, renewal: &Item) -> Result<bool> {
        let digest = secret.digest();
        let is_abandoned = Condition::unchanged(renewal, CLAIMED).and(Condition::unchanged(renewal, GENERATION));
        let writes = [
            Write::Delete(renewal_key(secret.user(), &digest), is_abandoned),
            Write::Delete(session_key(secret.user(), &digest), Condition::Always),
        ];
        let is_ended = self.renewal_write(&writes).await?;
        if is_ended {
            tracing::warn!(target: "audit", event = "session ended: its renewal was interrupted", by = ?secret.user().as_str());
            runtime::clock::sleep(LEASE).await;
        }
        Ok(is_ended)
    }

    /// Executes writes. Returns `false` if a condition does not hold.
    async fn renewal_write(&self, writes: &[Write]) -> Result<bool> {
        match self.access.transact(writes).await {
            Ok(()) => Ok(true),
            Err(Failure::Cancelled(_)) => Ok(false),
            Err(failure) => Err(failure.into()),
        }
    }
}

fn claimed_renewal(
    secret: &UserSecret,
    claim: String,
    session: &RenewableSession,
    item: &Item,
) -> Result<ClaimedRenewal> {
    let both = item.get(PROVIDER).zip(item.bytes(REFRESH));
    let (provider, sealed) = both.ok_or_else(|| Error::internal("a renewal is unreadable"))?;
    Ok(ClaimedRenewal {
        secret: secret.clone(),
        claim,
        grace_until: item.get(GRACE_UNTIL),
        renew_by: session.renew_by,
        person: session.person.clone(),
        provider: provider.to_owned(),
        sealed: sealed.to_vec(),
    })
}
