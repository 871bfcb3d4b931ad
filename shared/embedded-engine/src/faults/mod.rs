//! Faults of DynamoDB that the engine does not have: an HTTP client around another one.
//!
//! Everything is counted, nothing is random and nothing sleeps, so a test that calls in one order
//! fails in one way. Only operations on items meet faults; those on tables pass.

mod batch;
mod gate;
mod refusal;
mod state;
mod trouble;

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use aws_sdk_dynamodb::Client;
use aws_smithy_runtime_api::client::http::{
    HttpClient, HttpConnector, HttpConnectorFuture, HttpConnectorSettings, SharedHttpClient, SharedHttpConnector,
};
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_runtime_api::client::result::ConnectorError;
use aws_smithy_runtime_api::client::runtime_components::RuntimeComponents;

use crate::{Engine, Error, client_over, wire};
pub use gate::Gate;
use gate::Moment;
use state::{Spell, State};
pub use trouble::Trouble;

/// Wraps an HTTP client and is the handle that controls it. A clone controls, and counts, the same calls.
///
/// A rate of `n` means every `n`th call that could meet the fault, beginning with the `n`th from when the rate was set; 0,
/// as it begins, means never.
#[derive(Clone)]
pub struct FaultInjector {
    inner: SharedHttpClient,
    state: Arc<Mutex<State>>,
}

impl FaultInjector {
    /// Around `inner`, such as [`Engine::http_client`]; without a fault until one is asked for.
    #[must_use]
    pub fn new(inner: SharedHttpClient) -> Self {
        Self { inner, state: Arc::default() }
    }

    /// A client whose calls meet the faults.
    #[must_use]
    pub fn client(&self) -> Client {
        client_over(self.http_client())
    }

    /// The HTTP client of [`client`](Self::client), for a client that is configured otherwise.
    #[must_use]
    pub fn http_client(&self) -> SharedHttpClient {
        SharedHttpClient::new(self.clone())
    }

    /// Every `n`th call is refused and not executed: in turn throttled, over the provisioned throughput and, if it is a
    /// write or a transaction, in conflict with a transaction.
    pub fn refuse_every(&self, n: u64) {
        self.state().refuse.set_rate(n);
    }

    /// From the `n`th call on (1 is the next) every call is refused, until [`work_again`](Self::work_again): its process has
    /// been cut off.
    pub fn cut_off_at(&self, n: u64) {
        self.trouble_at(Trouble::Throttled, n, u64::MAX);
    }

    /// From the `n`th call on (1 is the next), so many calls meet this trouble.
    pub fn trouble_at(&self, trouble: Trouble, n: u64, calls: u64) {
        self.state().trouble = Some(Spell { trouble, before: n.saturating_sub(1), calls });
    }

    /// No call is refused, and no trouble met, any more.
    pub fn work_again(&self) {
        self.state().trouble = None;
        self.refuse_every(0);
    }

    /// Every `n`th call that is not refused is executed but its answer is lost: in turn the connection breaks and the server
    /// fails. A caller that tries again meets its own write.
    pub fn lose_answer_every(&self, n: u64) {
        self.state().lose.set_rate(n);
    }

    /// Every `n`th batch executes only the first half, rounded up, of its keys or requests for each table; the answer lists
    /// the others as unprocessed.
    pub fn halve_batch_every(&self, n: u64) {
        self.state().halve.set_rate(n);
    }

    /// From now on queries of global indexes (those named `GSI...`) are answered as of now. They
    /// miss later writes, and still show items that are changed or deleted later, until
    /// [`catch_up`](Self::catch_up). `engine` is the one that this injector wraps. Called again,
    /// the indexes catch up to now and stay there.
    pub fn freeze_global_indexes(&self, engine: &Engine) -> Result<(), Error> {
        let copy = engine.snapshot()?.connector();
        self.state().frozen_indexes = Some(copy);
        Ok(())
    }

    /// The global indexes are up to date again.
    pub fn catch_up(&self) {
        self.state().frozen_indexes = None;
    }

    /// Stops the `nth` call of an operation from now on (1 is the next) before it does anything.
    #[must_use = "a gate that is dropped is open"]
    pub fn pause_before(&self, operation: &str, nth: u64) -> Gate {
        self.state().pause(Moment::Before, operation, nth)
    }

    /// Stops the `nth` call of an operation from now on when it has its answer, before its caller has it.
    #[must_use = "a gate that is dropped is open"]
    pub fn pause_after(&self, operation: &str, nth: u64) -> Gate {
        self.state().pause(Moment::After, operation, nth)
    }

    /// How often an operation was called, refused calls included.
    #[must_use]
    pub fn calls(&self, operation: &str) -> u64 {
        self.state().calls(operation)
    }

    /// How often each operation was called, by name.
    #[must_use]
    pub fn all_calls(&self) -> Vec<(String, u64)> {
        self.state().all_calls()
    }

    /// From now on keeps the operations that may meet faults in the order in which they are called.
    pub fn keep_order(&self) {
        self.state().keep_order();
    }

    /// These operations in the order in which they were called, since [`keep_order`](Self::keep_order).
    #[must_use]
    pub fn order(&self) -> Vec<String> {
        self.state().order()
    }

    /// Starts a new count of calls; the rates and gates go on as they were.
    pub fn reset_calls(&self) {
        self.state().reset_calls();
    }

    fn state(&self) -> MutexGuard<'_, State> {
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
        let operation = wire::operation(&request).to_owned();
        // Decided on arrival, so that a pause does not change the course of later calls.
        let course = self.injector.state().next_call(&operation);
        for pause in course.pauses_before {
            pause.hold().await;
        }
        let answer = match course.refuse {
            _ if course.disconnect => refusal::disconnected(),
            _ if course.deny => refusal::denied(),
            Some(turn) => refusal::refuse(&operation, turn, request).await,
            None if course.halve => batch::execute_half(&self.inner, request).await,
            None if operation == "Query" => self.query(request).await,
            None => self.inner.call(request).await,
        };
        for pause in course.pauses_after {
            pause.hold().await;
        }
        match course.lose {
            Some(turn) => answer.and_then(|_| refusal::lost(turn)),
            None => answer,
        }
    }

    async fn query(&self, request: HttpRequest) -> Result<HttpResponse, ConnectorError> {
        let frozen = self.injector.state().frozen_indexes.clone();
        let Some(frozen) = frozen else { return self.inner.call(request).await };
        let (request, query) = wire::read(request).await?;
        let index = query["IndexName"].as_str().unwrap_or_default();
        if index.starts_with("GSI") { frozen.call(request).await } else { self.inner.call(request).await }
    }
}
