//! Renewals: no refresh token is presented twice, whatever the number of processes and failures.

use std::collections::HashSet;
use std::sync::Mutex;

use auth::store::{CLAIM_SECONDS, ClaimedRenewal, NewSsoSession, POSTPONEMENT_SECONDS, RenewalClaim, renew_by_after};
use embedded_engine::faults::InjectedFault;
use identity_providers::Person;
use mlflow_api::Result;
use permissions::UserSecret;

use crate::site::{AHEAD, Process, Site, name, pass, person, timed};

const GRACE: i64 = 3_600;
/// The time in seconds after which the sessions of these tests are due for renewal.
const DUE: u64 = 14 * 60 + 1;
/// The header of a request whose session has to be renewed.
const RENEW: &str = "renew";

/// A provider with rotation and reuse detection: a token that is presented twice fails the test.
#[derive(Default)]
struct Provider(Mutex<HashSet<Vec<u8>>>);

impl Provider {
    /// Returns the next token.
    fn refresh(&self, token: &[u8]) -> Vec<u8> {
        let mut presented = self.0.lock().unwrap();
        assert!(presented.insert(token.to_vec()), "{} was presented twice", String::from_utf8_lossy(token));
        format!("token {}", presented.len()).into_bytes()
    }

    fn count(&self) -> usize {
        self.0.lock().unwrap().len()
    }
}

/// Renews a session as the auth function does. Returns whether it is valid afterwards.
async fn renew(process: &Process, secret: &UserSecret, provider: &Provider) -> Result<bool> {
    match process.store.renewal_claim(secret, AHEAD).await? {
        RenewalClaim::Claimed(claimed) => {
            let next = provider.refresh(&claimed.sealed);
            process.store.renewal_complete(&claimed, renew_by_after(15), Some(next)).await
        }
        RenewalClaim::Busy { .. } | RenewalClaim::NotDue { .. } => Ok(true),
        RenewalClaim::Ended => Ok(false),
    }
}

async fn claimed(process: &Process, secret: &UserSecret) -> ClaimedRenewal {
    match process.store.renewal_claim(secret, AHEAD).await.unwrap() {
        RenewalClaim::Claimed(claimed) => claimed,
        other => panic!("{other:?}"),
    }
}

/// Signs in, and returns the session when it is due for renewal.
async fn due(process: &Process) -> (Person, UserSecret) {
    let ann = person("1");
    let user = process.found(&ann, "ann").await;
    let secret = process.session(&user, &ann).await;
    pass(DUE).await;
    (ann, secret)
}

#[tokio::test]
async fn a_session_is_refused_with_a_mark_when_it_is_overdue_until_it_is_renewed() {
    timed(async {
        let site = Site::new().await;
        let (process, elsewhere, provider) = (site.process(), site.process(), Provider::default());
        let ann = person("1");
        let user = process.found(&ann, "ann").await;
        let secret = process.session(&user, &ann).await;
        let early = process.store.renewal_claim(&secret, AHEAD).await.unwrap();
        assert!(matches!(early, RenewalClaim::NotDue { renew_by: Some(_) }), "{early:?}");
        assert_eq!(elsewhere.admits_session(&secret).await, (200, None));
        pass(15 * 60).await;
        for process in [&process, &elsewhere] {
            assert_eq!(process.admits_session(&secret).await, (401, Some(RENEW.to_owned())));
        }
        let renewal = claimed(&elsewhere, &secret).await;
        assert_eq!((&renewal.person, renewal.provider.as_str(), renewal.user()), (&ann, "example", secret.user()));
        assert_eq!((renewal.sealed.as_slice(), renewal.session_digest()), (&b"token 0"[..], secret.digest()));
        assert!(matches!(process.store.renewal_claim(&secret, AHEAD).await.unwrap(), RenewalClaim::Busy { .. }));
        let next = provider.refresh(&renewal.sealed);
        assert!(elsewhere.store.renewal_complete(&renewal, renew_by_after(15), Some(next)).await.unwrap());
        // Other processes may refuse the session until the lease has expired.
        pass(1).await;
        assert_eq!(process.admits_session(&secret).await, (200, None));
        pass(15 * 60).await;
        assert_eq!(claimed(&process, &secret).await.sealed, b"token 1");
        // A claim that has ended ends no other one.
        assert!(!elsewhere.store.renewal_complete(&renewal, renew_by_after(15), None).await.unwrap());
        site.check().await;
    })
    .await;
}

#[tokio::test]
async fn one_of_many_processes_claims_a_renewal() {
    timed(async {
        let site = Site::new().await;
        let provider = Provider::default();
        let (_, secret) = due(&site.process()).await;
        let processes: Vec<_> = (0..10).map(|_| site.faulty()).collect();
        for round in 1..=4 {
            site.faults.lose_answer_every(if round % 2 == 0 { 3 } else { 0 });
            let all = processes.iter().map(|process| renew(process, &secret, &provider));
            let renewed = futures::future::join_all(all).await;
            assert!(renewed.into_iter().all(|renewed| renewed.unwrap_or(true)));
            site.faults.work_again();
            site.faults.lose_answer_every(0);
            assert_eq!(provider.count(), round, "round {round}");
            pass(DUE).await;
        }
        site.check().await;
    })
    .await;
}

#[tokio::test]
async fn a_claim_is_recognized_after_its_response_was_lost() {
    timed(async {
        let site = Site::new().await;
        let (_, secret) = due(&site.process()).await;
        let process = site.faulty();
        // The first call reads, the second one claims.
        site.faults.reset_calls();
        site.faults.trouble_at(InjectedFault::AnswerLost, 2, 1);
        let renewal = claimed(&process, &secret).await;
        assert_eq!(renewal.sealed, b"token 0");
        site.faults.work_again();
        assert!(process.store.renewal_complete(&renewal, renew_by_after(15), None).await.unwrap());
        // A provider without rotation issues no new token.
        pass(DUE).await;
        assert_eq!(claimed(&process, &secret).await.sealed, b"token 0");
    })
    .await;
}

/// A delayed duplicate of a claim would otherwise claim the renewal for a process that has ended its
/// claim, and the session would end.
#[tokio::test]
async fn a_claim_that_arrives_after_another_renewal_has_no_effect() {
    timed(async {
        let site = Site::new().await;
        let (_, secret) = due(&site.process()).await;
        let (slow, elsewhere) = (site.faulty(), site.process());
        site.faults.reset_calls();
        let mut gate = site.faults.pause_before("UpdateItem", 1);
        let late = slow.store.renewal_claim(&secret, AHEAD);
        let meanwhile = async {
            gate.reached().await;
            let renewal = claimed(&elsewhere, &secret).await;
            assert!(elsewhere.store.renewal_complete(&renewal, renew_by_after(15), None).await.unwrap());
            gate.open();
        };
        let (late, ()) = futures::future::join(Box::pin(late), Box::pin(meanwhile)).await;
        let late = late.unwrap();
        assert!(matches!(late, RenewalClaim::NotDue { renew_by: Some(_) }), "{late:?}");
        pass(DUE).await;
        claimed(&elsewhere, &secret).await;
    })
    .await;
}

/// Kills the renewing process at each of its requests to the table, before and after the request
/// takes effect. Whatever happens afterwards, no token is presented twice, and the session is either
/// renewed or ends.
#[tokio::test]
async fn a_process_that_dies_at_any_request_presents_no_token_again() {
    timed(async {
        let base = Site::new().await;
        let (ann, secret) = due(&base.process()).await;
        let mut tried = 0;
        for fault in [InjectedFault::Disconnected, InjectedFault::AnswerLost] {
            for at in 1.. {
                let (site, provider) = (base.copy(), Provider::default());
                let process = site.faulty();
                site.faults.trouble_at(fault, at, u64::MAX);
                let dead = renew(&process, &secret, &provider).await;
                let calls: u64 = site.faults.all_calls().iter().map(|(_, calls)| calls).sum();
                site.faults.work_again();
                if calls < at {
                    assert!(dead.unwrap());
                    break;
                }
                tried += 1;
                // Others are told to wait while the claim is valid.
                let others = [site.process(), site.process()];
                for wait in [1, CLAIM_SECONDS.unsigned_abs(), DUE] {
                    pass(wait).await;
                    for other in &others {
                        let is_valid = renew(other, &secret, &provider).await.unwrap();
                        let (status, header) = other.admits_session(&secret).await;
                        let is_waiting = status == 401 && header.as_deref() == Some(RENEW);
                        assert!(status == if is_valid { 200 } else { 401 } || is_waiting, "{fault:?} {at} {wait}");
                    }
                }
                site.check().await;
                // The user can sign in again.
                let user = others[0].found(&ann, "").await;
                assert_eq!(others[1].admits_session(&others[0].session(&user, &ann).await).await.0, 200);
            }
        }
        assert!(tried >= 6, "{tried}");
    })
    .await;
}

#[tokio::test]
async fn a_claim_that_nobody_ends_ends_the_session() {
    timed(async {
        let site = Site::new().await;
        let (process, elsewhere) = (site.process(), site.process());
        let (_, secret) = due(&process).await;
        let late = claimed(&process, &secret).await;
        pass(CLAIM_SECONDS.unsigned_abs() - 1).await;
        assert!(matches!(elsewhere.store.renewal_claim(&secret, AHEAD).await.unwrap(), RenewalClaim::Busy { .. }));
        pass(2).await;
        assert!(matches!(elsewhere.store.renewal_claim(&secret, AHEAD).await.unwrap(), RenewalClaim::Ended));
        assert_eq!(process.admits_session(&secret).await, (401, None));
        // The process was slow rather than dead.
        assert!(!process.store.renewal_complete(&late, renew_by_after(15), Some(b"next".to_vec())).await.unwrap());
        assert!(matches!(process.store.renewal_claim(&secret, AHEAD).await.unwrap(), RenewalClaim::Ended));
    })
    .await;
}

#[tokio::test]
async fn an_outage_of_the_provider_has_a_grace_period() {
    timed(async {
        let site = Site::new().await;
        let process = site.process();
        let (_, secret) = due(&process).await;
        let first = claimed(&process, &secret).await;
        let over = first.renew_by + GRACE;
        let mut renew_by = process.store.renewal_postpone(&first, GRACE, false).await.unwrap().unwrap();
        let mut postponed = 1;
        loop {
            pass(1).await;
            assert_eq!(process.admits_session(&secret).await.0, 200);
            assert!(renew_by <= over);
            pass((renew_by - runtime::clock::now_ms() / 1_000).unsigned_abs()).await;
            assert_eq!(process.admits_session(&secret).await.0, 401);
            let claim = claimed(&process, &secret).await;
            assert_eq!(claim.sealed, b"token 0");
            match process.store.renewal_postpone(&claim, GRACE, false).await.unwrap() {
                Some(next) => renew_by = next,
                None => break,
            }
            postponed += 1;
        }
        assert_eq!((renew_by, postponed), (over, 1 + (GRACE + AHEAD - 1) / POSTPONEMENT_SECONDS));
        assert_eq!(process.admits_session(&secret).await, (401, None));
    })
    .await;
}

#[tokio::test]
async fn the_grace_period_begins_anew_after_a_renewal() {
    timed(async {
        let site = Site::new().await;
        let process = site.process();
        let (_, secret) = due(&process).await;
        let claim = claimed(&process, &secret).await;
        process.store.renewal_postpone(&claim, GRACE, false).await.unwrap().unwrap();
        pass(POSTPONEMENT_SECONDS.unsigned_abs()).await;
        let claim = claimed(&process, &secret).await;
        assert!(process.store.renewal_complete(&claim, renew_by_after(90), None).await.unwrap());
        pass(90 * 60).await;
        let claim = claimed(&process, &secret).await;
        assert!(process.store.renewal_postpone(&claim, GRACE, false).await.unwrap().is_some());
    })
    .await;
}

#[tokio::test]
async fn a_token_without_a_response_is_not_presented_again_and_the_session_lasts_for_the_grace_period() {
    timed(async {
        let site = Site::new().await;
        let process = site.process();
        let (_, secret) = due(&process).await;
        let claim = claimed(&process, &secret).await;
        let renew_by = process.store.renewal_postpone(&claim, GRACE, true).await.unwrap();
        assert_eq!(renew_by, Some(claim.renew_by + GRACE));
        pass(GRACE.unsigned_abs()).await;
        let waiting = process.store.renewal_claim(&secret, AHEAD).await.unwrap();
        assert!(matches!(waiting, RenewalClaim::NotDue { .. }), "{waiting:?}");
        assert_eq!(process.admits_session(&secret).await.0, 200);
        pass(AHEAD.unsigned_abs()).await;
        assert!(matches!(process.store.renewal_claim(&secret, AHEAD).await.unwrap(), RenewalClaim::Ended));
        assert_eq!(process.admits_session(&secret).await, (401, None));
    })
    .await;
}

#[tokio::test]
async fn a_session_without_a_refresh_token_ends_when_it_has_to_be_renewed() {
    timed(async {
        let site = Site::new().await;
        let process = site.process();
        let ann = person("1");
        let user = process.found(&ann, "ann").await;
        let secret = UserSecret::new(name("ann"));
        let new = NewSsoSession { secret: &secret, renew_by: renew_by_after(15), renewal: None };
        assert!(process.store.sso_session_open(&user, &ann, new).await.unwrap());
        pass(DUE).await;
        let early = process.store.renewal_claim(&secret, AHEAD).await.unwrap();
        assert!(matches!(early, RenewalClaim::NotDue { renew_by: Some(_) }), "{early:?}");
        assert_eq!(process.admits_session(&secret).await.0, 200);
        pass(AHEAD.unsigned_abs()).await;
        assert!(matches!(process.store.renewal_claim(&secret, AHEAD).await.unwrap(), RenewalClaim::Ended));
    })
    .await;
}

#[tokio::test]
async fn nothing_is_claimed_for_a_session_that_has_ended() {
    timed(async {
        let site = Site::new().await;
        let process = site.process();
        let (ann, secret) = due(&process).await;
        let claim = async |secret: &UserSecret| process.store.renewal_claim(secret, AHEAD).await.unwrap();
        assert!(matches!(claim(&UserSecret::new(name("ann"))).await, RenewalClaim::Ended));
        assert!(matches!(claim(&UserSecret::new(name("bob"))).await, RenewalClaim::Ended));
        process.store.user_set_disabled(&name("ann"), true).await.unwrap();
        assert!(matches!(claim(&secret).await, RenewalClaim::Ended));
        process.store.user_set_disabled(&name("ann"), false).await.unwrap();
        let renewal = claimed(&process, &secret).await;
        process.store.identity_unlink(&name("ann"), &ann).await.unwrap();
        assert!(!process.store.renewal_complete(&renewal, renew_by_after(15), None).await.unwrap());
        assert!(matches!(claim(&secret).await, RenewalClaim::Ended));
        // A session that was opened with a password is never due.
        process.user("bob", false).await;
        let password = crate::site::PASSWORD.to_owned();
        let by_password = process.store.session_open(&name("bob"), password, None).await.unwrap().unwrap();
        assert!(matches!(claim(&by_password).await, RenewalClaim::NotDue { renew_by: None }));
        site.check().await;
    })
    .await;
}

/// Tries every fault at every request of a renewal that is repeated until it succeeds.
#[tokio::test]
async fn a_renewal_survives_each_fault_of_the_table() {
    timed(async {
        let base = Site::new().await;
        let (_, secret) = due(&base.process()).await;
        for fault in
            [InjectedFault::Disconnected, InjectedFault::AnswerLost, InjectedFault::Throttled, InjectedFault::Conflict]
        {
            for at in 1.. {
                let (site, provider) = (base.copy(), Provider::default());
                let process = site.faulty();
                site.faults.trouble_at(fault, at, 1);
                let renewed = renew(&process, &secret, &provider).await;
                let calls: u64 = site.faults.all_calls().iter().map(|(_, calls)| calls).sum();
                assert!(renewed.unwrap(), "{fault:?} at {at}");
                assert_eq!(provider.count(), 1, "{fault:?} at {at}");
                if calls < at {
                    break;
                }
            }
        }
    })
    .await;
}
