//! Hashing and verification of passwords.

use std::collections::HashMap;
use std::fmt;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use argon2::{Algorithm, Argon2, Params, Version};
use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use mlflow_api::{Error, ErrorCode, Result, UserName};
use rand::RngExt;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;
use tokio::sync::Semaphore;

use crate::password_attempts::PasswordAttempts;

/// Memory of a hash in KiB, iterations, and lanes: the minimum that OWASP recommends for Argon2id.
/// 19 MiB is little compared with the 512 MB of a function.
const ARGON2_COST: (u32, u32, u32) = (19 * 1024, 2, 1);
/// Number of hashes that a process computes concurrently. Each takes 19 MiB and about 30 ms of CPU
/// time.
const CONCURRENCY: usize = 2;
/// Maximum number of hashes that are computed or pending in a process. Further requests are
/// rejected with 429, so that wrong passwords cannot delay other callers for long or exhaust the
/// memory. A user whose password this process has verified before is not affected, because no hash
/// has to be computed.
const MAX_PENDING: usize = 64;
/// Capacity of the cache of verified passwords. When it is full, the cache is cleared.
const MAX_CACHED_PASSWORDS: usize = 10_000;
/// Length of a salt and of a hash, in bytes.
const SALT_BYTES: usize = 16;
const HASH_BYTES: usize = 32;

/// The hash of a password, with its salt and cost parameters, in the PHC string format. The `Debug`
/// output does not contain it.
#[derive(Clone, PartialEq, Eq)]
pub struct PasswordHash(String);

impl PasswordHash {
    /// Wraps a stored hash.
    #[must_use]
    pub fn stored(text: &str) -> Self {
        Self(text.to_owned())
    }

    /// Returns the hash as it is stored.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns a digest of the hash. A session stores it, so that the session ends when the
    /// password changes.
    #[must_use]
    pub fn fingerprint(&self) -> String {
        STANDARD_NO_PAD.encode(Sha256::digest(&self.0))
    }

    /// Hashes a password with a new salt. Takes about 30 ms of CPU time.
    ///
    /// # Errors
    /// An internal error if hashing fails.
    fn make(password: &str) -> Result<Self> {
        let salt: [u8; SALT_BYTES] = rand::rng().random();
        let hash = derive(password, &salt, ARGON2_COST)?;
        let (memory, rounds, lanes) = ARGON2_COST;
        let [salt, hash] = [salt.as_slice(), hash.as_slice()].map(|bytes| STANDARD_NO_PAD.encode(bytes));
        Ok(Self(format!("$argon2id$v=19$m={memory},t={rounds},p={lanes}${salt}${hash}")))
    }

    /// Checks whether a password has this hash. Takes as long as hashing it.
    fn is_of(&self, password: &str) -> Result<bool> {
        let (cost, salt, hash) =
            self.parts().ok_or_else(|| Error::internal("the stored password hash is malformed"))?;
        Ok(derive(password, &salt, cost)?.ct_eq(&hash).into())
    }

    #[expect(clippy::type_complexity, reason = "cost, salt and hash, for the function above")]
    fn parts(&self) -> Option<((u32, u32, u32), Vec<u8>, Vec<u8>)> {
        let rest = self.0.strip_prefix("$argon2id$v=19$")?;
        let [cost, salt, hash] = rest.split('$').collect::<Vec<_>>().try_into().ok()?;
        let [memory, rounds, lanes] = cost.split(',').collect::<Vec<_>>().try_into().ok()?;
        let number = |text: &str, name: &str| text.strip_prefix(name)?.parse().ok();
        let cost = (number(memory, "m=")?, number(rounds, "t=")?, number(lanes, "p=")?);
        Some((cost, STANDARD_NO_PAD.decode(salt).ok()?, STANDARD_NO_PAD.decode(hash).ok()?))
    }
}

impl fmt::Debug for PasswordHash {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("PasswordHash")
    }
}

fn derive(password: &str, salt: &[u8], (memory, rounds, lanes): (u32, u32, u32)) -> Result<[u8; HASH_BYTES]> {
    let params =
        Params::new(memory, rounds, lanes, Some(HASH_BYTES)).map_err(|error| Error::internal(error.to_string()))?;
    let mut hash = [0; HASH_BYTES];
    let argon = Argon2::new(Algorithm::Argon2id, Version::V0x13, params);
    let outcome = argon.hash_password_into(password.as_bytes(), salt, &mut hash);
    outcome.map_err(|error| Error::internal(error.to_string()))?;
    Ok(hash)
}

/// Hashes and verifies passwords. The number of concurrent hashes is limited across all callers,
/// and a password that was verified before is not hashed again.
#[derive(Clone)]
pub struct Passwords(Arc<State>);

struct State {
    pending_permits: Arc<Semaphore>,
    hashing_permits: Arc<Semaphore>,
    /// For each user with a verified password: the stored hash, and a digest of the password that is
    /// computed with this process's `key`. Stored hashes are unique because of their salts. An entry
    /// therefore no longer matches after the password has been changed, or after the user has been
    /// deleted and another one created with the same name.
    verified: Mutex<HashMap<UserName, (PasswordHash, [u8; 32])>>,
    /// Locks of passwords that are being verified, by the digest of name and password. The task
    /// that verifies a password holds its lock.
    verification_locks: Mutex<HashMap<[u8; 32], Weak<tokio::sync::Mutex<()>>>>,
    attempts: PasswordAttempts,
    key: [u8; 32],
    hash_count: std::sync::atomic::AtomicUsize,
}

impl Default for Passwords {
    fn default() -> Self {
        Self(Arc::new(State {
            pending_permits: Arc::new(Semaphore::new(MAX_PENDING)),
            hashing_permits: Arc::new(Semaphore::new(CONCURRENCY)),
            verified: Mutex::default(),
            verification_locks: Mutex::default(),
            attempts: PasswordAttempts::default(),
            key: rand::rng().random(),
            hash_count: std::sync::atomic::AtomicUsize::new(0),
        }))
    }
}

impl Passwords {
    /// Hashes a new password.
    ///
    /// # Errors
    /// `RESOURCE_EXHAUSTED` if too many hashes are pending. An internal error if hashing fails.
    pub async fn hash(&self, password: String) -> Result<PasswordHash> {
        self.run_limited(move || PasswordHash::make(&password)).await
    }

    /// Checks whether a password matches the stored hash of a user. `from` is the client's address.
    /// Takes the same time whether or not the user exists.
    ///
    /// # Errors
    /// `RESOURCE_EXHAUSTED` after too many wrong passwords, or if too many hashes are pending. An
    /// internal error if hashing fails.
    pub async fn check(
        &self,
        name: &UserName,
        stored: Option<&PasswordHash>,
        password: String,
        from: Option<IpAddr>,
    ) -> Result<bool> {
        let digest = self.digest(name, &password);
        let is_checked = || stored.is_some_and(|hash| self.has_verified(name, hash, &digest));
        if is_checked() {
            return Ok(true);
        }
        // Many workers of one user may start at once with the same password. The first request that
        // gets the lock verifies the password for all of them.
        let _alone = self.verification_lock(digest).lock_owned().await;
        if is_checked() {
            return Ok(true);
        }
        let attempt = self.0.attempts.take(name, from).ok_or_else(too_many_pending)?;
        let outcome = self.is_right(name, stored, password, digest).await;
        if !matches!(outcome, Ok(false)) {
            attempt.give_back();
        }
        outcome
    }

    async fn is_right(
        &self,
        name: &UserName,
        stored: Option<&PasswordHash>,
        password: String,
        digest: [u8; 32],
    ) -> Result<bool> {
        let Some(hash) = stored.cloned() else {
            // Hashes the password although the user does not exist, so that the check takes as long
            // as for an existing user.
            self.run_limited(move || PasswordHash::make(&password)).await?;
            return Ok(false);
        };
        let compared = hash.clone();
        let is_right = self.run_limited(move || compared.is_of(&password)).await?;
        if is_right {
            let mut checked = self.0.verified.lock().unwrap_or_else(PoisonError::into_inner);
            if checked.len() >= MAX_CACHED_PASSWORDS {
                checked.clear();
            }
            checked.insert(name.clone(), (hash, digest));
        }
        Ok(is_right)
    }

    /// Returns the number of hashes that were computed. For tests.
    #[must_use]
    pub fn hash_count(&self) -> usize {
        self.0.hash_count.load(std::sync::atomic::Ordering::Relaxed)
    }

    fn has_verified(&self, name: &UserName, hash: &PasswordHash, digest: &[u8; 32]) -> bool {
        let checked = self.0.verified.lock().unwrap_or_else(PoisonError::into_inner);
        checked.get(name).is_some_and(|(of, known)| of == hash && bool::from(known.ct_eq(digest)))
    }

    /// Returns the lock for verifying one password of one user.
    fn verification_lock(&self, digest: [u8; 32]) -> Arc<tokio::sync::Mutex<()>> {
        let mut checking = self.0.verification_locks.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(lock) = checking.get(&digest).and_then(Weak::upgrade) {
            return lock;
        }
        if checking.len() >= 2 * MAX_PENDING {
            checking.retain(|_, lock| lock.strong_count() > 0);
        }
        let lock = Arc::default();
        checking.insert(digest, Arc::downgrade(&lock));
        lock
    }

    fn digest(&self, name: &UserName, password: &str) -> [u8; 32] {
        let mut hash = Sha256::new();
        hash.update(self.0.key);
        // The parts are separated by a zero byte, which user names cannot contain.
        hash.update(format!("{name}\0{password}"));
        hash.finalize().into()
    }

    async fn run_limited<T: Send + 'static>(&self, work: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
        let place = Arc::clone(&self.0.pending_permits).try_acquire_owned().map_err(|_| too_many_pending())?;
        let turn = Arc::clone(&self.0.hashing_permits).acquire_owned().await.map_err(Error::internal)?;
        self.0.hash_count.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        // The permits are held until the hash is finished, even if the client disconnects.
        let in_turn = move || {
            let _held = (place, turn);
            work()
        };
        runtime::clock::aside(in_turn).await.map_err(Error::internal)?
    }
}

fn too_many_pending() -> Error {
    Error::new(ErrorCode::ResourceExhausted, "Too many sign-in attempts. Try again later.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_is_of_one_password() {
        let hash = PasswordHash::make("correct horse battery").unwrap();
        assert!(hash.is_of("correct horse battery").unwrap() && !hash.is_of("correct horse batterz").unwrap());
        assert!(hash.as_str().starts_with("$argon2id$v=19$m=19456,t=2,p=1$"), "{}", hash.as_str());
        assert_eq!(format!("{hash:?}"), "PasswordHash");
        assert!(PasswordHash::stored("x").is_of("x").is_err());
    }

    #[tokio::test]
    async fn a_password_is_hashed_once_for_each_hash_that_is_stored() {
        let passwords = Passwords::default();
        let name = UserName::named("ann").unwrap();
        let hash = passwords.hash("correct horse battery".to_owned()).await.unwrap();
        let check = async |stored: Option<&PasswordHash>, password: &str| {
            let is_right = passwords.check(&name, stored, password.to_owned(), None).await.unwrap();
            (is_right, passwords.hash_count())
        };
        assert_eq!(check(Some(&hash), "correct horse battery").await, (true, 2));
        assert_eq!(check(Some(&hash), "correct horse battery").await, (true, 2));
        assert_eq!(check(Some(&hash), "wrong horse battery").await, (false, 3));
        assert_eq!(check(None, "correct horse battery").await, (false, 4));
        // The name now belongs to another user, with another password hash.
        let other = passwords.hash("another horse battery".to_owned()).await.unwrap();
        assert_eq!(check(Some(&other), "correct horse battery").await, (false, 6));
        assert_eq!(check(Some(&other), "another horse battery").await, (true, 7));
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn many_who_begin_at_once_with_one_password_take_one_hash() {
        let passwords = Passwords::default();
        let name = UserName::named("ann").unwrap();
        let hash = passwords.hash("correct horse battery".to_owned()).await.unwrap();
        let all = (0..100).map(|_| passwords.check(&name, Some(&hash), "correct horse battery".to_owned(), None));
        let right = futures::future::join_all(all).await;
        assert!(right.into_iter().all(|is_right| is_right.unwrap()));
        assert_eq!(passwords.hash_count(), 2);
    }

    /// At one hash every 3 seconds and a burst of 50, at most 1,250 hashes are computed per hour.
    #[tokio::test(flavor = "multi_thread")]
    async fn ten_thousand_wrong_passwords_take_some_fifty_hashes_and_hold_nobody_up() {
        let passwords = Passwords::default();
        let ann = UserName::named("ann").unwrap();
        let hash = passwords.hash("correct horse battery".to_owned()).await.unwrap();
        let stranger = Some("192.0.2.1".parse().unwrap());
        let home = Some("198.51.100.1".parse().unwrap());
        let right = |name| passwords.check(name, Some(&hash), "correct horse battery".to_owned(), home);
        assert!(right(&ann).await.unwrap());
        let begin = runtime::clock::Moment::now();
        for number in 0..10_000 {
            let name = UserName::named(&format!("user {}", number % 100)).unwrap();
            let name = if number % 2 == 0 { &ann } else { &name };
            let _ = passwords.check(name, Some(&hash), format!("wrong {number}"), stranger).await;
        }
        let hashes = passwords.hash_count() as u64 - 2;
        assert!(hashes <= 50 + begin.age().as_secs() / 3 + 1, "{hashes}");
        // Wrong passwords of the stranger affect neither a user whose password has been verified
        // nor a user on another network.
        let made = passwords.hash_count();
        assert!(right(&ann).await.unwrap());
        assert_eq!(passwords.hash_count(), made);
        // Buckets are chosen by random hashes, so one of these users may share a bucket with the
        // stranger.
        let mut refused = 0;
        for number in 0..5 {
            let name = UserName::named(&format!("bob {number}")).unwrap();
            let from = Some(format!("198.51.{number}.1").parse().unwrap());
            let checked = passwords.check(&name, Some(&hash), "correct horse battery".to_owned(), from).await;
            refused += usize::from(!checked.is_ok_and(|is_right| is_right));
        }
        assert!(refused <= 1, "{refused}");
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn whoever_goes_away_has_tried_and_frees_no_turn_before_the_end() {
        let passwords = Passwords::default();
        let name = UserName::named("ann").unwrap();
        let stranger = Some("192.0.2.1".parse().unwrap());
        let mut refused = 0;
        for number in 0..30 {
            let check = passwords.check(&name, None, format!("wrong {number}"), stranger);
            let gone = tokio::time::timeout(std::time::Duration::ZERO, check).await;
            refused += usize::from(matches!(gone, Ok(Err(_))));
        }
        assert_eq!(refused, 20);
        assert!(passwords.hash_count() <= 10, "{}", passwords.hash_count());
    }

    #[tokio::test]
    async fn what_waits_for_a_hash_is_bounded_and_a_checked_password_waits_for_nothing() {
        let passwords = Passwords::default();
        let name = UserName::named("ann").unwrap();
        let hash = passwords.hash("correct horse battery".to_owned()).await.unwrap();
        let check = |password: &str| passwords.check(&name, Some(&hash), password.to_owned(), None);
        assert!(check("correct horse battery").await.unwrap());
        let all = passwords.0.pending_permits.acquire_many(u32::try_from(MAX_PENDING).unwrap()).await.unwrap();
        assert_eq!(check("wrong horse battery").await.unwrap_err().code, ErrorCode::ResourceExhausted);
        assert!(check("correct horse battery").await.unwrap());
        drop(all);
        assert!(!check("wrong horse battery").await.unwrap());
        assert_eq!(passwords.hash_count(), 3);
    }
}
