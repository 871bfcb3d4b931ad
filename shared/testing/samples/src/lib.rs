//! For tests: requests to every route of every domain, reads too.
//!
//! One list of samples per domain serves every walk over all routes. The walks check what a call
//! needs, which partitions it touches, and what it costs. They also check what becomes of it under
//! faults and throttling, and what it says of data that cannot be read. A sample creates what it
//! acts on, so the samples of a domain need no others before them.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::missing_panics_doc,
    clippy::must_use_candidate,
    reason = "a test says what it expects by failing"
)]

mod artifacts;
mod auth;
mod evaluation;
mod graphql;
mod registry;
mod traces;
mod tracking;
mod walk;

use futures::future::BoxFuture;

pub use auth::WALKER;
pub use traces::export;
pub use walk::{ROOT, Read, Walk};

/// Sends requests.
pub type Steps = for<'w> fn(&'w mut Walk) -> BoxFuture<'w, ()>;

/// The samples of one domain.
pub struct Samples {
    /// Its name in the list of all domains.
    pub domain: &'static str,
    /// One request and more to every route that writes.
    pub writes: Steps,
    /// One request or more to every route that reads. The data stays, and [`Walk::reads`] has the
    /// requests.
    pub reads: Steps,
}

/// The samples of all domains.
pub const SAMPLES: [Samples; 7] = [
    Samples {
        domain: "tracking",
        writes: |walk| Box::pin(tracking::writes(walk)),
        reads: |walk| Box::pin(tracking::reads(walk)),
    },
    Samples {
        domain: "evaluation",
        writes: |walk| Box::pin(evaluation::writes(walk)),
        reads: |walk| Box::pin(evaluation::reads(walk)),
    },
    Samples {
        domain: "traces",
        writes: |walk| Box::pin(traces::writes(walk)),
        reads: |walk| Box::pin(traces::reads(walk)),
    },
    Samples {
        domain: "registry",
        writes: |walk| Box::pin(registry::writes(walk)),
        reads: |walk| Box::pin(registry::reads(walk)),
    },
    Samples {
        domain: "artifacts",
        writes: |walk| Box::pin(artifacts::writes(walk)),
        reads: |walk| Box::pin(artifacts::reads(walk)),
    },
    Samples { domain: "auth", writes: |walk| Box::pin(auth::writes(walk)), reads: |walk| Box::pin(auth::reads(walk)) },
    Samples {
        domain: "graphql",
        writes: |_| Box::pin(std::future::ready(())),
        reads: |walk| Box::pin(graphql::reads(walk)),
    },
];

/// All samples, one domain after another: first those that write, then those that read.
pub async fn all(walk: &mut Walk) {
    for samples in &SAMPLES {
        (samples.writes)(walk).await;
    }
    for samples in &SAMPLES {
        (samples.reads)(walk).await;
    }
}

/// The samples that write, one domain after another.
pub async fn writes(walk: &mut Walk) {
    for samples in &SAMPLES {
        (samples.writes)(walk).await;
    }
}
