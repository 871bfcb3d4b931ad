//! A bucket of S3, or of another store with S3's protocol: the requests that artifacts need, and
//! presigned URLs.
//!
//! All requests are idempotent, and are retried after throttling, server errors, and lost
//! responses. [`Bucket`] has a method for each. Creating a presigned URL takes no request.

mod address;
mod connection;
mod failure;
mod list;
mod presigned;
mod requests;
mod signature;
#[cfg(test)]
mod tests;
mod upload;
mod xml;

pub use connection::MAX_RANGE_BYTES;
pub use failure::{BucketFailure, Result};
pub use list::{ListedObject, ObjectPage};
pub use presigned::MAX_EXPIRATION;
pub use requests::{Bucket, ObjectMetadata};
pub use upload::{MAX_PARTS, MIN_PART_BYTES, UploadedPart};
