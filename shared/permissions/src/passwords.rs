//! Passwords: how they are kept, and that they are checked.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use argon2::{Algorithm, Argon2, Params, Version};
use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use mlflow_api::{Error, ErrorCode, Result, UserName};
use rand::RngExt;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;
use tokio::sync::Semaphore;

/// Memory of a hash in KiB, rounds, and lanes: the least that OWASP recommends of Argon2id. 19 MiB is little beside the 512 MB of a function.
const COST: (u32, u32, u32) = (19 * 1024, 2, 1);
/// Hashes that are made at a time in a process. Each takes 19 MiB and some 30 ms of a processor.
const AT_ONCE: usize = 2;
/// Hashes that wait for their turn or are made, in a process. What comes beyond them is answered 429: whoever sends wrong passwords can have
/// nobody wait for long, and no memory be kept for them. Users whose password was checked before need no hash.
const WAITING: usize = 64;
/// Users whose passwords a process remembers to have checked.
const REMEMBERED: usize = 10_000;
/// Bytes of a salt, and of a hash.
const SALT: usize = 16;
const HASH: usize = 32;

/// The hash of a password, with its salt and its cost, in the PHC string format. What is shown of it for debugging says nothing.
#[derive(Clone, PartialEq, Eq)]
pub struct PasswordHash(String);

impl PasswordHash {
    /// One that was stored.
    #[must_use]
    pub fn stored(text: &str) -> Self {
        Self(text.to_owned())
    }

    /// As it is stored.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The hash of a password, with a new salt. It takes a processor for some 30 ms.
    ///
    /// # Errors
    /// An internal one.
    fn make(password: &str) -> Result<Self> {
        let salt: [u8; SALT] = rand::rng().random();
        let hash = derive(password, &salt, COST)?;
        let (memory, rounds, lanes) = COST;
        let [salt, hash] = [salt.as_slice(), hash.as_slice()].map(|bytes| STANDARD_NO_PAD.encode(bytes));
        Ok(Self(format!("$argon2id$v=19$m={memory},t={rounds},p={lanes}${salt}${hash}")))
    }

    /// Whether a password has this hash. It takes as long as making one.
    fn is_of(&self, password: &str) -> Result<bool> {
        let (cost, salt, hash) = self.parts().ok_or_else(|| Error::internal("a hash of a password cannot be read"))?;
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

fn derive(password: &str, salt: &[u8], (memory, rounds, lanes): (u32, u32, u32)) -> Result<[u8; HASH]> {
    let params = Params::new(memory, rounds, lanes, Some(HASH)).map_err(|error| Error::internal(error.to_string()))?;
    let mut hash = [0; HASH];
    let argon = Argon2::new(Algorithm::Argon2id, Version::V0x13, params);
    let outcome = argon.hash_password_into(password.as_bytes(), salt, &mut hash);
    outcome.map_err(|error| Error::internal(error.to_string()))?;
    Ok(hash)
}

/// Makes and checks hashes of passwords: a few at a time, whoever asks, and none again for a password that was checked already.
#[derive(Clone)]
pub struct Passwords(Arc<State>);

struct State {
    places: Semaphore,
    turns: Semaphore,
    /// Of users whose password was checked: the stored hash, and a digest of the password by this process's own key. No two stored hashes are
    /// alike, as each has a salt: another password, or another user of the same name, has another hash.
    checked: Mutex<HashMap<UserName, (PasswordHash, [u8; 32])>>,
    key: [u8; 32],
    made: std::sync::atomic::AtomicUsize,
}

impl Default for Passwords {
    fn default() -> Self {
        Self(Arc::new(State {
            places: Semaphore::new(WAITING),
            turns: Semaphore::new(AT_ONCE),
            checked: Mutex::default(),
            key: rand::rng().random(),
            made: std::sync::atomic::AtomicUsize::new(0),
        }))
    }
}

impl Passwords {
    /// The hash of a new password.
    ///
    /// # Errors
    /// An internal one.
    pub async fn hash(&self, password: String) -> Result<PasswordHash> {
        self.in_turn(move || PasswordHash::make(&password)).await
    }

    /// Whether this is the password of a user, of whom this hash is stored. Whether there is such a user makes no difference to the time that
    /// it takes.
    ///
    /// # Errors
    /// An internal one.
    pub async fn check(&self, name: &UserName, stored: Option<&PasswordHash>, password: String) -> Result<bool> {
        let digest = self.digest(&password);
        if stored.is_some_and(|hash| self.has_checked(name, hash, &digest)) {
            return Ok(true);
        }
        let Some(hash) = stored.cloned() else {
            // As much work as for a user who is there.
            self.in_turn(move || PasswordHash::make(&password)).await?;
            return Ok(false);
        };
        let compared = hash.clone();
        let is_right = self.in_turn(move || compared.is_of(&password)).await?;
        if is_right {
            let mut checked = self.0.checked.lock().unwrap_or_else(PoisonError::into_inner);
            if checked.len() >= REMEMBERED {
                checked.clear();
            }
            checked.insert(name.clone(), (hash, digest));
        }
        Ok(is_right)
    }

    /// How many hashes were made, for tests.
    #[must_use]
    pub fn made(&self) -> usize {
        self.0.made.load(std::sync::atomic::Ordering::Relaxed)
    }

    fn has_checked(&self, name: &UserName, hash: &PasswordHash, digest: &[u8; 32]) -> bool {
        let checked = self.0.checked.lock().unwrap_or_else(PoisonError::into_inner);
        checked.get(name).is_some_and(|(of, known)| of == hash && bool::from(known.ct_eq(digest)))
    }

    fn digest(&self, password: &str) -> [u8; 32] {
        let mut hash = Sha256::new();
        hash.update(self.0.key);
        hash.update(password.as_bytes());
        hash.finalize().into()
    }

    async fn in_turn<T: Send + 'static>(&self, work: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
        let _place = self.0.places.try_acquire().map_err(|_| {
            Error::new(ErrorCode::ResourceExhausted, "Too many people sign in at this time. Try again later.")
        })?;
        let _turn = self.0.turns.acquire().await.map_err(Error::internal)?;
        self.0.made.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        clock::aside(work).await.map_err(Error::internal)?
    }
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
            let is_right = passwords.check(&name, stored, password.to_owned()).await.unwrap();
            (is_right, passwords.made())
        };
        assert_eq!(check(Some(&hash), "correct horse battery").await, (true, 2));
        assert_eq!(check(Some(&hash), "correct horse battery").await, (true, 2));
        assert_eq!(check(Some(&hash), "wrong horse battery").await, (false, 3));
        assert_eq!(check(None, "correct horse battery").await, (false, 4));
        // Somebody else has the name now.
        let other = passwords.hash("another horse battery".to_owned()).await.unwrap();
        assert_eq!(check(Some(&other), "correct horse battery").await, (false, 6));
        assert_eq!(check(Some(&other), "another horse battery").await, (true, 7));
    }
    #[tokio::test]
    async fn what_waits_for_a_hash_is_bounded_and_a_checked_password_waits_for_nothing() {
        let passwords = Passwords::default();
        let name = UserName::named("ann").unwrap();
        let hash = passwords.hash("correct horse battery".to_owned()).await.unwrap();
        let check = |password: &str| passwords.check(&name, Some(&hash), password.to_owned());
        assert!(check("correct horse battery").await.unwrap());
        let all = passwords.0.places.acquire_many(u32::try_from(WAITING).unwrap()).await.unwrap();
        assert_eq!(check("wrong horse battery").await.unwrap_err().code, ErrorCode::ResourceExhausted);
        assert!(check("correct horse battery").await.unwrap());
        drop(all);
        assert!(!check("wrong horse battery").await.unwrap());
        assert_eq!(passwords.made(), 3);
    }
}
