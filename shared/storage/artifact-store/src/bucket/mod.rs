//! A bucket of S3, or of another store with S3's protocol: the requests that artifacts need, and
//! presigned URLs.
//!
//! All requests are idempotent, and are retried after throttling, server errors, and lost
//! responses. [`Bucket`] has a method for each. Creating a presigned URL takes no request.

mod address;
mod connection;
mod credentials;
mod failure;
mod list;
mod presigned;
mod requests;
mod retry;
mod sign;
#[cfg(test)]
mod tests;
mod upload;
mod xml;

pub use failure::{Failure, Result};
pub use list::{Listed, Page};
pub use presigned::LONGEST_EXPIRATION;
pub use requests::{Bucket, Object};
pub use upload::{MOST_PARTS, Part, SMALLEST_PART};
