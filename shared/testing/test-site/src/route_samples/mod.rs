//! Requests to every route of every domain, for tests.
//!
//! Several tests send requests to all routes, and share one list of samples per domain. They check
//! which permissions a call needs, which partitions it touches, what it costs, how it behaves under
//! faults and throttling, and how it reports unreadable data. A sample creates the entities that it
//! acts on, so the samples of a domain do not depend on those of others.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::missing_panics_doc,
    clippy::must_use_candidate,
    reason = "tests fail by panicking"
)]

mod artifacts;
mod auth;
mod evaluation;
mod graphql;
mod mcp_servers;
mod registry;
mod reviews;
mod sample_client;
mod skills;
mod traces;
mod tracking;
mod webhooks;

use futures::future::BoxFuture;

pub use auth::SAMPLE_USER;
pub use sample_client::{ROOT, ReadRequest, SampleClient};
pub use traces::export;

/// A function that sends requests.
pub type Steps = for<'w> fn(&'w mut SampleClient) -> BoxFuture<'w, ()>;

/// The samples of one domain.
pub struct DomainSamples {
    /// Name of the domain in the list of all domains.
    pub domain: &'static str,
    /// Sends at least one request to each route that writes.
    pub writes: Steps,
    /// Creates entities, and sends at least one request to each route that reads. The entities
    /// remain, and [`SampleClient::reads`] holds the requests, so that they can be sent again.
    pub reads: Steps,
}

/// The samples of all domains.
pub const SAMPLES: [DomainSamples; 10] = [
    DomainSamples {
        domain: "tracking",
        writes: |walk| Box::pin(tracking::writes(walk)),
        reads: |walk| Box::pin(tracking::reads(walk)),
    },
    DomainSamples {
        domain: "evaluation",
        writes: |walk| Box::pin(evaluation::writes(walk)),
        reads: |walk| Box::pin(evaluation::reads(walk)),
    },
    DomainSamples {
        domain: "traces",
        writes: |walk| Box::pin(traces::writes(walk)),
        reads: |walk| Box::pin(traces::reads(walk)),
    },
    DomainSamples {
        domain: "registry",
        writes: |walk| Box::pin(registry::writes(walk)),
        reads: |walk| Box::pin(registry::reads(walk)),
    },
    DomainSamples {
        domain: "mcp-servers",
        writes: |walk| Box::pin(mcp_servers::writes(walk)),
        reads: |walk| Box::pin(mcp_servers::reads(walk)),
    },
    DomainSamples {
        domain: "skills",
        writes: |walk| Box::pin(skills::writes(walk)),
        reads: |walk| Box::pin(skills::reads(walk)),
    },
    DomainSamples {
        domain: "artifacts",
        writes: |walk| Box::pin(artifacts::writes(walk)),
        reads: |walk| Box::pin(artifacts::reads(walk)),
    },
    DomainSamples {
        domain: "webhooks",
        writes: |walk| Box::pin(webhooks::writes(walk)),
        reads: |walk| Box::pin(webhooks::reads(walk)),
    },
    DomainSamples {
        domain: "auth",
        writes: |walk| Box::pin(auth::writes(walk)),
        reads: |walk| Box::pin(auth::reads(walk)),
    },
    DomainSamples {
        domain: "graphql",
        writes: |_| Box::pin(std::future::ready(())),
        reads: |walk| Box::pin(graphql::reads(walk)),
    },
];

/// Runs the samples of all domains one after another: first all writes, then all reads.
pub async fn all(walk: &mut SampleClient) {
    for samples in &SAMPLES {
        (samples.writes)(walk).await;
    }
    for samples in &SAMPLES {
        (samples.reads)(walk).await;
    }
}

/// Runs the samples that write, one domain after another.
pub async fn writes(walk: &mut SampleClient) {
    for samples in &SAMPLES {
        (samples.writes)(walk).await;
    }
}
