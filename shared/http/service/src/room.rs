//! Room in memory for the bodies of requests, for all requests of the process together.

use std::time::Duration;

use mlflow_api::{Error, ErrorCode, Result};
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::{Instant, timeout};

/// Bodies that are shorter, in bytes, need no room: there is little that many of them take.
pub(crate) const SMALL: usize = 64 << 10;
/// Bytes of bodies that are read, or wait until there is room to work on them: two of the longest.
const TO_READ: usize = 64 << 20;
/// Bytes of bodies, decompressed, that are worked on at a time; a longer one is worked on alone.
/// The values made from a body take up to some ten times as much.
const TO_WORK: usize = 16 << 20;
/// How long a request waits for others to make room, in all. OpenTelemetry's exporter gives up 10 seconds after it began.
pub(crate) const PATIENCE: Duration = Duration::from_secs(5);

static READING: Semaphore = Semaphore::const_new(TO_READ);
static WORKING: Semaphore = Semaphore::const_new(TO_WORK);

/// Room for the body of one request, and the values made from it, until it is dropped.
pub(crate) struct BodyRoom {
    permit: Option<SemaphorePermit<'static>>,
    /// How long the request may still wait.
    patience: Duration,
}

impl BodyRoom {
    /// None yet.
    pub(crate) const fn none() -> Self {
        Self { permit: None, patience: PATIENCE }
    }

    /// Waits until there is room to read a body of at most so many bytes, as they are sent.
    ///
    /// # Errors
    /// `RESOURCE_EXHAUSTED`, where there is none for too long.
    pub(crate) async fn wait_to_read(&mut self, bytes: usize) -> Result<()> {
        self.wait_for(&READING, bytes.min(TO_READ)).await
    }

    /// Makes room again, but for so many bytes.
    pub(crate) fn keep(&mut self, bytes: usize) {
        if bytes < SMALL {
            self.permit = None;
        }
        if let Some(permit) = &mut self.permit {
            drop(permit.split(permit.num_permits().saturating_sub(bytes)));
        }
    }

    /// Waits until there is room to work on a body that was read, and has so many bytes decompressed; then others can be read.
    ///
    /// # Errors
    /// As [`BodyRoom::wait_to_read`].
    pub(crate) async fn wait_to_work(&mut self, bytes: usize) -> Result<()> {
        self.wait_for(&WORKING, bytes.min(TO_WORK)).await
    }

    /// It keeps the room that it has until it gets the other.
    async fn wait_for(&mut self, free: &'static Semaphore, bytes: usize) -> Result<()> {
        if bytes < SMALL {
            self.permit = None;
            return Ok(());
        }
        let bytes = u32::try_from(bytes).map_err(Error::internal)?;
        let begun = Instant::now();
        let permit = timeout(self.patience, free.acquire_many(bytes)).await.ok().and_then(std::result::Result::ok);
        self.patience = self.patience.saturating_sub(begun.elapsed());
        let message = "There are too many large requests at this time. Try again later.";
        self.permit = Some(permit.ok_or_else(|| Error::new(ErrorCode::ResourceExhausted, message))?);
        Ok(())
    }
}

/// The most bytes that one compressed byte becomes, by the design of deflate.
const GROWTH: usize = 1_032;

/// How the body of a request is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Compression {
    /// Not at all, or in a way that no endpoint takes.
    None,
    Gzip,
    Deflate,
}

impl Compression {
    /// As the header `Content-Encoding` says.
    pub(crate) fn named(encoding: Option<&str>) -> Self {
        match encoding.map(str::to_lowercase).as_deref() {
            Some("gzip") => Self::Gzip,
            Some("deflate") => Self::Deflate,
            _ => Self::None,
        }
    }

    /// Bytes that a body has decompressed, at most: gzip ends with the uncompressed length.
    pub(crate) fn of(self, body: &[u8], longest: usize) -> usize {
        match (self, body.last_chunk::<4>()) {
            (Self::Gzip, Some(length)) => {
                let length = usize::try_from(u32::from_le_bytes(*length)).unwrap_or(usize::MAX);
                length.clamp(body.len().min(longest), longest)
            }
            (Self::None, _) => body.len(),
            _ => body.len().saturating_mul(GROWTH).min(longest),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_body_becomes_is_known_before_it_is_decompressed() {
        let named = |name| Compression::named(Some(name));
        assert_eq!((Compression::named(None), named("br")), (Compression::None, Compression::None));
        assert_eq!((named("GZIP"), named("deflate")), (Compression::Gzip, Compression::Deflate));
        assert_eq!(Compression::None.of(b"12345", 2_000), 5);
        assert_eq!((Compression::Deflate.of(b"1", 2_000), Compression::Deflate.of(b"12", 2_000)), (1_032, 2_000));
        // A body of 300 bytes, and one that says less than it has itself.
        assert_eq!(Compression::Gzip.of(&[31, 139, 44, 1, 0, 0], 2_000), 300);
        assert_eq!(Compression::Gzip.of(&[31, 139, 1, 0, 0, 0], 2_000), 6);
        assert_eq!(Compression::Gzip.of(&[255; 4], 2_000), 2_000);
    }
}
