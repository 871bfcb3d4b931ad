//! Creations with faults at their requests and answers. If a client is told to repeat a request, it
//! had no effect, and nothing happens twice.

use embedded_engine::faults::Trouble;
use serde_json::Value;

use crate::{Answer, Api, Dump, Site, all_troubles};

/// How many requests meet a trouble: one alone, the next one as well, or all that follow.
const CALLS: [u64; 3] = [1, 2, u64::MAX];

/// A site on which a creation is tried.
#[derive(Debug)]
pub struct Ground {
    /// The site.
    pub site: Site,
    /// A server whose requests meet the faults, and that soon gives up.
    pub faulty: Api,
    /// One whose requests meet none.
    pub other: Api,
    /// The body of the request.
    pub body: Value,
}

/// A creation.
#[derive(Clone, Copy, Debug)]
pub struct Creation {
    /// Where it is posted to, below `/api/`.
    pub path: &'static str,
    /// Counts the created entities, of each kind.
    pub count: fn(&Dump) -> Vec<usize>,
    /// The amounts that it adds to the counts.
    pub adds: &'static [usize],
}

impl Creation {
    /// Tries the creation with each of its requests in each trouble, each time on a new ground. The
    /// trouble meets the request alone, with the next one, or with all that follow: by turns. If all
    /// troubles are wanted, it meets it in each of these ways.
    pub async fn check(self, ground: impl AsyncFn() -> Ground) {
        let rounds = if all_troubles() { CALLS.len() } else { 1 };
        let troubles = [Trouble::Throttled, Trouble::Disconnected, Trouble::AnswerLost];
        for (place, trouble) in troubles.into_iter().enumerate() {
            for round in 0..rounds {
                for (nth, calls) in (1..).zip(CALLS.into_iter().cycle().skip(place + round)) {
                    if !self.meets(ground().await, trouble, nth, calls).await {
                        assert!(nth > 1);
                        break;
                    }
                }
            }
        }
    }

    async fn send(&self, api: &Api, body: &Value) -> Answer {
        api.call_at("POST", &format!("/api/{}", self.path), body.to_string()).await
    }

    async fn count(&self, site: &Site) -> Vec<usize> {
        (self.count)(&site.dump().await)
    }

    /// Lets the `nth` request, or some from it on, meet a trouble; whether it came to that many.
    async fn meets(&self, ground: Ground, trouble: Trouble, nth: u64, calls: u64) -> bool {
        let Ground { site, faulty, other, body } = ground;
        let before = self.count(&site).await;
        let after: Vec<_> = before.iter().zip(self.adds).map(|(before, added)| before + added).collect();
        assert_ne!(before, after);
        site.faults.reset_calls();
        site.faults.trouble_at(trouble, nth, calls);
        let answer = self.send(&faulty, &body).await;
        site.faults.work_again();
        let made: u64 = site.faults.all_calls().iter().map(|(_, calls)| calls).sum();
        let found = self.count(&site).await;
        let course = format!("{} {trouble:?} at {nth} for {calls}: {answer:?}", self.path);
        match answer.status {
            200 => assert_eq!(found, after, "{course}"),
            _ if answer.is_repeated() => {
                assert_eq!(found, before, "{course}");
                self.send(&other, &body).await.ok();
                assert_eq!(self.count(&site).await, after, "{course}");
            }
            _ => {
                assert!(found == before || found == after, "{course}");
                answer.refused(409, "ABORTED");
                assert_eq!(trouble, Trouble::AnswerLost, "{course}");
            }
        }
        made >= nth
    }
}
