//! The network between functions and the table, with its latency.

use std::time::Duration;

use aws_smithy_runtime_api::client::http::{
    HttpClient, HttpConnector, HttpConnectorFuture, SharedHttpClient, SharedHttpConnector, http_client_fn,
};
use aws_smithy_runtime_api::client::orchestrator::HttpRequest;

use crate::executor::BusyCounter;

/// Latency of a request for a single item to DynamoDB from within its region, and of a batch or
/// transaction.
pub(crate) const REQUEST_LATENCY: Duration = Duration::from_millis(5);
pub(crate) const BATCH_LATENCY: Duration = Duration::from_millis(10);

/// Returns a client whose requests take a fixed simulated time. The real time that the engine needs
/// to process them does not count.
pub(crate) fn with_latency(client: SharedHttpClient, busy: BusyCounter) -> SharedHttpClient {
    http_client_fn(move |settings, components| {
        let connector = client.http_connector(settings, components);
        SharedHttpConnector::new(SlowConnector { connector, busy: busy.clone() })
    })
}

#[derive(Clone, Debug)]
struct SlowConnector {
    connector: SharedHttpConnector,
    busy: BusyCounter,
}

impl HttpConnector for SlowConnector {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let Self { connector, busy } = self.clone();
        let operation = request.headers().get("x-amz-target").unwrap_or_default();
        let takes =
            if operation.contains("Batch") || operation.contains("Transact") { BATCH_LATENCY } else { REQUEST_LATENCY };
        HttpConnectorFuture::new(async move {
            runtime::clock::sleep(takes / 2).await;
            let answer = busy.during(connector.call(request)).await;
            runtime::clock::sleep(takes / 2).await;
            answer
        })
    }
}
