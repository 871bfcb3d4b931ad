//! Memory limits for request bodies, shared by all requests of the process.

use std::time::Duration;

use mlflow_api::{Error, ErrorCode, Result};
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::{Instant, timeout};

/// Bodies below this size, in bytes, need no reservation, because even many of them take little
/// memory.
pub(crate) const MAX_UNRESERVED_BYTES: usize = 64 << 10;
/// Maximum total bytes of bodies that are being read or wait to be processed: enough for two bodies
/// of the maximum size.
const MAX_READING_BYTES: usize = 64 << 20;
/// Maximum total bytes of decompressed bodies that are processed concurrently. A longer body is
/// processed alone. Values that are parsed from a body take up to about ten times as much memory as
/// the body.
const MAX_PROCESSING_BYTES: usize = 16 << 20;
/// Total time that a request waits for reservations. OpenTelemetry's exporter gives up after 10
/// seconds.
pub(crate) const MAX_WAIT: Duration = Duration::from_secs(5);

static READ_PERMITS: Semaphore = Semaphore::const_new(MAX_READING_BYTES);
static PROCESS_PERMITS: Semaphore = Semaphore::const_new(MAX_PROCESSING_BYTES);

/// A memory reservation for the body of one request and the values parsed from it. Released on
/// drop.
pub(crate) struct BodyMemory {
    permit: Option<SemaphorePermit<'static>>,
    /// Remaining time that the request may wait.
    remaining_wait: Duration,
}

impl BodyMemory {
    /// Returns an empty reservation.
    pub(crate) const fn none() -> Self {
        Self { permit: None, remaining_wait: MAX_WAIT }
    }

    /// Waits until a body of at most `bytes`, as sent, may be read.
    ///
    /// # Errors
    /// `RESOURCE_EXHAUSTED` if no memory becomes available in time.
    pub(crate) async fn wait_to_read(&mut self, bytes: usize) -> Result<()> {
        self.wait_for(&READ_PERMITS, bytes.min(MAX_READING_BYTES)).await
    }

    /// Releases all but `bytes` of the reservation.
    pub(crate) fn shrink(&mut self, bytes: usize) {
        if bytes < MAX_UNRESERVED_BYTES {
            self.permit = None;
        }
        if let Some(permit) = &mut self.permit {
            drop(permit.split(permit.num_permits().saturating_sub(bytes)));
        }
    }

    /// Waits until a body that has been read, and has `bytes` when decompressed, may be processed.
    /// The memory for reading is then available to other requests.
    ///
    /// # Errors
    /// `RESOURCE_EXHAUSTED` if no memory becomes available in time.
    pub(crate) async fn wait_to_process(&mut self, bytes: usize) -> Result<()> {
        self.wait_for(&PROCESS_PERMITS, bytes.min(MAX_PROCESSING_BYTES)).await
    }

    /// Replaces the reservation. The current one is held until the new one has been acquired.
    async fn wait_for(&mut self, free: &'static Semaphore, bytes: usize) -> Result<()> {
        if bytes < MAX_UNRESERVED_BYTES {
            self.permit = None;
            return Ok(());
        }
        let bytes = u32::try_from(bytes).map_err(Error::internal)?;
        let begun = Instant::now();
        let permit =
            timeout(self.remaining_wait, free.acquire_many(bytes)).await.ok().and_then(std::result::Result::ok);
        self.remaining_wait = self.remaining_wait.saturating_sub(begun.elapsed());
        let message = "Too many large requests are in progress. Try again later.";
        self.permit = Some(permit.ok_or_else(|| Error::new(ErrorCode::ResourceExhausted, message))?);
        Ok(())
    }
}

/// Maximum expansion factor of deflate.
const MAX_DEFLATE_RATIO: usize = 1_032;

/// The compression of a request body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Compression {
    /// Not compressed, or in a way that no endpoint supports.
    None,
    Gzip,
    Deflate,
}

impl Compression {
    /// Returns the compression that a `Content-Encoding` header names.
    pub(crate) fn named(encoding: Option<&str>) -> Self {
        match encoding.map(str::to_lowercase).as_deref() {
            Some("gzip") => Self::Gzip,
            Some("deflate") => Self::Deflate,
            _ => Self::None,
        }
    }

    /// Returns the maximum size of a body after decompression. Gzip data ends with its uncompressed
    /// length.
    pub(crate) fn of(self, body: &[u8], longest: usize) -> usize {
        match (self, body.last_chunk::<4>()) {
            (Self::Gzip, Some(length)) => {
                let length = usize::try_from(u32::from_le_bytes(*length)).unwrap_or(usize::MAX);
                length.clamp(body.len().min(longest), longest)
            }
            (Self::None, _) => body.len(),
            _ => body.len().saturating_mul(MAX_DEFLATE_RATIO).min(longest),
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
        // A body whose last four bytes state a length of 300, and one that states 1 byte, which is
        // less than the compressed body has.
        assert_eq!(Compression::Gzip.of(&[31, 139, 44, 1, 0, 0], 2_000), 300);
        assert_eq!(Compression::Gzip.of(&[31, 139, 1, 0, 0, 0], 2_000), 6);
        assert_eq!(Compression::Gzip.of(&[255; 4], 2_000), 2_000);
    }
}
