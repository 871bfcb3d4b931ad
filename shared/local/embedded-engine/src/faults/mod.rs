//! Injection of DynamoDB's faults, which the engine does not have: an HTTP client that wraps
//! another one.
//!
//! Faults are counted, never random, and nothing sleeps, so a test that makes its calls in a fixed
//! order fails in a reproducible way. Only operations on items are affected; those on tables pass.

mod error_responses;
mod fault;
mod gate;
mod partial_batch;
mod state;

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use aws_sdk_dynamodb::Client;
use aws_smithy_runtime_api::client::http::{
    HttpClient, HttpConnector, HttpConnectorFuture, HttpConnectorSettings, SharedHttpClient, SharedHttpConnector,
};
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_runtime_api::client::result::ConnectorError;
use aws_smithy_runtime_api::client::runtime_components::RuntimeComponents;

use crate::{Engine, EngineError, aws_json, client_over};
pub use fault::InjectedFault;
pub use gate::Gate;
use gate::GatePosition;
use state::{FaultState, FaultWindow};

/// An HTTP client that wraps another and injects faults, and the handle that controls it. Clones
/// share the faults and the counts.
///
/// A rate of `n` affects every `n`th eligible call, starting with the `n`th one after the rate was
/// set. The initial rate of 0 means never.
#[derive(Clone)]
pub struct FaultInjector {
    inner: SharedHttpClient,
    state: Arc<Mutex<FaultState>>,
}

impl FaultInjector {
    /// Wraps `inner`, such as [`Engine::http_client`]. There are no faults until one is requested.
    #[must_use]
    pub fn new(inner: SharedHttpClient) -> Self {
        Self { inner, state: Arc::default() }
    }

    /// Returns a client whose calls are affected by the faults.
    #[must_use]
    pub fn client(&self) -> Client {
        client_over(self.http_client())
    }

    /// Returns the HTTP client of [`client`](Self::client), for clients with another configuration.
    #[must_use]
    pub fn http_client(&self) -> SharedHttpClient {
        SharedHttpClient::new(self.clone())
    }

    /// Refuses every `n`th call without executing it. The reasons alternate: throttled, over the
    /// provisioned throughput, and, for writes and transactions, in conflict with a transaction.
    pub fn refuse_every(&self, n: u64) {
        self.state().refuse.set_rate(n);
    }

    /// Throttles all calls from the `n`th on (1 is the next) until
    /// [`work_again`](Self::work_again). To the caller, the table is then inaccessible.
    pub fn cut_off_at(&self, n: u64) {
        self.trouble_at(InjectedFault::Throttled, n, u64::MAX);
    }

    /// Injects a fault into a number of consecutive calls, starting with the `n`th (1 is the next).
    pub fn trouble_at(&self, trouble: InjectedFault, n: u64, calls: u64) {
        self.state().trouble = Some(FaultWindow { trouble, before: n.saturating_sub(1), calls });
    }

    /// Ends refusals and injected faults.
    pub fn work_again(&self) {
        self.state().trouble = None;
        self.refuse_every(0);
    }

    /// Executes every `n`th call that is not refused, but loses its response. Alternately, the
    /// connection breaks or the server fails. A caller that retries a lost write finds that it has
    /// already been made.
    pub fn lose_answer_every(&self, n: u64) {
        self.state().lose.set_rate(n);
    }

    /// Executes only the first half, rounded up, of each table's keys or requests in every `n`th
    /// batch. The response lists the second half as unprocessed.
    pub fn halve_batch_every(&self, n: u64) {
        self.state().halve.set_rate(n);
    }

    /// Freezes the global indexes (those named `GSI...`) at their current state, until
    /// [`catch_up`](Self::catch_up) is called. Queries of them miss later writes, and still return
    /// items that are later changed or deleted. `engine` must be the engine that this injector
    /// wraps. Calling the method again freezes the indexes at the state of that moment.
    pub fn freeze_global_indexes(&self, engine: &Engine) -> Result<(), EngineError> {
        let copy = engine.snapshot()?.connector();
        self.state().frozen_indexes = Some(copy);
        Ok(())
    }

    /// Brings the global indexes up to date again.
    pub fn catch_up(&self) {
        self.state().frozen_indexes = None;
    }

    /// Holds the `nth` call of an operation from now on (1 is the next) before it is executed.
    #[must_use = "a gate that is dropped is open"]
    pub fn pause_before(&self, operation: &str, nth: u64) -> Gate {
        self.state().pause(GatePosition::Before, operation, nth)
    }

    /// Holds the `nth` call of an operation from now on after its execution, before the caller gets
    /// the response.
    #[must_use = "a gate that is dropped is open"]
    pub fn pause_after(&self, operation: &str, nth: u64) -> Gate {
        self.state().pause(GatePosition::After, operation, nth)
    }

    /// Returns how often an operation was called, including refused calls.
    #[must_use]
    pub fn calls(&self, operation: &str) -> u64 {
        self.state().calls(operation)
    }

    /// Returns how often each operation was called, by name.
    #[must_use]
    pub fn all_calls(&self) -> Vec<(String, u64)> {
        self.state().all_calls()
    }

    /// From now on, records the sequence of operations that are subject to faults.
    pub fn keep_order(&self) {
        self.state().keep_order();
    }

    /// Returns the operations that are subject to faults, in the order in which they were called
    /// since [`keep_order`](Self::keep_order).
    #[must_use]
    pub fn order(&self) -> Vec<String> {
        self.state().order()
    }

    /// Resets the count of calls. Rates and gates continue.
    pub fn reset_calls(&self) {
        self.state().reset_calls();
    }

    fn state(&self) -> MutexGuard<'_, FaultState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for FaultInjector {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("FaultInjector").field("inner", &self.inner).finish_non_exhaustive()
    }
}

impl HttpClient for FaultInjector {
    fn http_connector(&self, settings: &HttpConnectorSettings, components: &RuntimeComponents) -> SharedHttpConnector {
        let inner = self.inner.http_connector(settings, components);
        SharedHttpConnector::new(FaultyConnector { inner, injector: self.clone() })
    }
}

#[derive(Clone, Debug)]
struct FaultyConnector {
    inner: SharedHttpConnector,
    injector: FaultInjector,
}

impl HttpConnector for FaultyConnector {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        HttpConnectorFuture::new(self.clone().answer(request))
    }
}

impl FaultyConnector {
    async fn answer(self, request: HttpRequest) -> Result<HttpResponse, ConnectorError> {
        let operation = aws_json::operation(&request).to_owned();
        // The faults of a call are determined on arrival, so that a pause of this call does not
        // affect the faults of later calls.
        let course = self.injector.state().next_call(&operation);
        for pause in course.pauses_before {
            pause.hold().await;
        }
        let answer = match (course.refuse, course.deny) {
            _ if course.disconnect => error_responses::disconnected(),
            (_, Some(denial)) => error_responses::denied(denial),
            (Some(turn), None) => error_responses::refuse(&operation, turn, request).await,
            (None, None) if course.halve => partial_batch::execute_half(&self.inner, request).await,
            (None, None) if operation == "Query" => self.query(request).await,
            (None, None) => self.inner.call(request).await,
        };
        for pause in course.pauses_after {
            pause.hold().await;
        }
        match course.lose {
            Some(turn) => answer.and_then(|_| error_responses::lost(turn)),
            None => answer,
        }
    }

    async fn query(&self, request: HttpRequest) -> Result<HttpResponse, ConnectorError> {
        let frozen = self.injector.state().frozen_indexes.clone();
        let Some(frozen) = frozen else { return self.inner.call(request).await };
        let (request, query) = aws_json::read(request).await?;
        let index = query["IndexName"].as_str().unwrap_or_default();
        if index.starts_with("GSI") { frozen.call(request).await } else { self.inner.call(request).await }
    }
}
