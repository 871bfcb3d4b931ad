//! The function that sends events to webhooks, as a Lambda function.

use std::sync::Arc;

use deliver::{Deliverer, DelivererEvent, OutboundSender};
use lambda_runtime::{Error, LambdaEvent, service_fn};
use outbound::OutboundClient;
use secrets::{KmsKey, SecretKeys};
use serde_json::{Value, json};
use table::Table;

// For the allocator and the single thread, see `domain::lambda`.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    domain::lambda::logged(Box::pin(serve())).await
}

async fn serve() -> Result<(), Error> {
    let table = Table::from_environment().await?;
    let keys = match std::env::var("SECRETS_KEY").ok().filter(|key| !key.is_empty()) {
        Some(key) => SecretKeys::Kms(KmsKey::new(key)),
        None => SecretKeys::None,
    };
    let sender = OutboundSender(OutboundClient::new(domain::outbound_policy()?));
    let deliverer = Deliverer::new(table, Arc::new(sender), Arc::new(keys));
    let handler = |event: LambdaEvent<Value>| {
        let deliverer = deliverer.clone();
        // The future is boxed, because the compiler fails on more deeply nested futures.
        async move { Box::pin(answer(deliverer, event.payload)).await }
    };
    lambda_runtime::run(service_fn(handler)).await
}

async fn answer(deliverer: Deliverer, event: Value) -> Result<Value, Error> {
    // A deployment sends this request to check that the function starts
    // (`tools/deploy/first_call.py`).
    if event["rawPath"] == "/health" {
        return Ok(json!({ "statusCode": 200 }));
    }
    match serde_json::from_value(event)? {
        DelivererEvent::Test(request) => {
            let outcome = deliverer.test(&request).await.map_err(|failure| format!("{failure:?}"))?;
            Ok(serde_json::to_value(outcome)?)
        }
        DelivererEvent::Deliver(request) => {
            deliverer.deliver(&request).await.map_err(|failure| format!("{failure:?}"))?;
            Ok(Value::Null)
        }
    }
}
