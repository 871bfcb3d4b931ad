//! One attempt to deliver an event.

use std::time::Duration;

use aws_lc_rs::hmac;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use entities::webhooks::{StoredWebhook, WEBHOOK_SECRET_PURPOSE};
use key_schema::sha256_128;
use mlflow_api::{WebhookEventId, WebhookId, Workspace};
use runtime::clock::{Moment, now_ms};
use secrets::{Secret, SecretContext, SecretError, SecretKeys};

use crate::sender::{Message, SendFailure, Sender, SenderResponse};

/// Statuses after which MLflow retries.
const RETRIED_STATUSES: [u16; 5] = [429, 500, 502, 503, 504];

/// The outcome of an attempt. The texts are stored and shown to operators. They contain the status
/// that the receiver responded with, but nothing else that it has sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The receiver has accepted the event.
    Delivered,
    /// The attempt failed, and another one will be made later.
    Retry {
        why: String,
        retry_after: Option<Duration>,
        /// Whether the receiver could not be reached or did not respond in time, so that further
        /// attempts are likely to run into the timeout as well.
        is_unresponsive: bool,
    },
    /// The attempt failed for a reason that another attempt would not change, so the delivery is
    /// given up.
    Final(String),
}

impl Outcome {
    pub(crate) fn of(sent: Result<SenderResponse, AttemptFailure>) -> Self {
        let retry = |why, is_unresponsive| Self::Retry { why, retry_after: None, is_unresponsive };
        match sent {
            Ok(SenderResponse { status: 200..=299, .. }) => Self::Delivered,
            Ok(SenderResponse { status, retry_after, .. }) => {
                let why = format!("status {status}");
                if RETRIED_STATUSES.contains(&status) {
                    Self::Retry { why, retry_after, is_unresponsive: false }
                } else {
                    Self::Final(why)
                }
            }
            Err(AttemptFailure::Sending(SendFailure::Refused(why))) => Self::Final(why),
            Err(AttemptFailure::Sending(SendFailure::Unresponsive(why))) => retry(why, true),
            Err(AttemptFailure::Sending(SendFailure::Broken(why))) => retry(why, false),
            Err(AttemptFailure::Secret(error)) => retry(error.to_string(), false),
        }
    }
}

/// The reason why an attempt has no response.
#[derive(Debug)]
pub(crate) enum AttemptFailure {
    /// The secret cannot be opened. Nothing is sent, because a delivery without a signature could be
    /// taken for one of an attacker.
    Secret(SecretError),
    Sending(SendFailure),
}

/// Makes one attempt to send a body to a webhook. The timeout includes the request to KMS that
/// decrypts the webhook's secret.
pub(crate) async fn attempt(
    (sender, keys): (&dyn Sender, &SecretKeys),
    workspace: &Workspace,
    webhook: &StoredWebhook,
    (delivery_id, body): (String, &str),
    timeout: Duration,
) -> Result<SenderResponse, AttemptFailure> {
    let begin = Moment::now();
    let timestamp = now_ms() / 1_000;
    let mut headers = vec![
        ("content-type", "application/json".to_owned()),
        ("x-mlflow-delivery-id", delivery_id.clone()),
        ("x-mlflow-timestamp", timestamp.to_string()),
    ];
    if let Some(sealed) = &webhook.secret {
        let owner = webhook.id.to_string();
        let context = SecretContext { purpose: WEBHOOK_SECRET_PURPOSE, workspace: workspace.as_str(), owner: &owner };
        let sealed = sealed.clone().into();
        let opened = tokio::time::timeout(timeout, keys.open(&sealed, &context)).await;
        let too_late = || SecretError::KeyUnavailable("KMS did not respond in time".to_owned());
        let secret = opened.unwrap_or_else(|_| Err(too_late())).map_err(AttemptFailure::Secret)?;
        headers.push(("x-mlflow-signature", signature(&secret, &delivery_id, timestamp, body)));
    }
    let message = Message { url: &webhook.url, headers, body, timeout: timeout.saturating_sub(begin.age()) };
    sender.send(message).await.map_err(AttemptFailure::Sending)
}

/// Returns the signature of a delivery, as MLflow computes it.
fn signature(secret: &Secret, delivery_id: &str, timestamp: i64, body: &str) -> String {
    let key = hmac::Key::new(hmac::HMAC_SHA256, secret.expose());
    let mut context = hmac::Context::with_key(&key);
    context.update(format!("{delivery_id}.{timestamp}.").as_bytes());
    context.update(body.as_bytes());
    format!("v1,{}", STANDARD.encode(context.sign()))
}

/// Returns the id of a delivery, a UUID that is the same for every attempt.
pub(crate) fn delivery_id(event: WebhookEventId, webhook: WebhookId) -> String {
    uuid(sha256_128(&[event.bits().to_be_bytes(), webhook.bits().to_be_bytes()].concat()))
}

/// Returns a UUID of version 8 with these bits, except those that the version and the variant
/// occupy. Version 8 leaves the meaning of all other bits to the application.
pub(crate) fn uuid(bits: u128) -> String {
    let bits = bits & !(0xf << 76) & !(0x3 << 62) | (0x8 << 76) | (0x2 << 62);
    let text = format!("{bits:032x}");
    let parts = [&text[..8], &text[8..12], &text[12..16], &text[16..20], &text[20..]];
    parts.join("-")
}

#[cfg(test)]
mod tests {
    use aws_smithy_runtime_api::client::http::{HttpConnector, HttpConnectorFuture};
    use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
    use aws_smithy_types::body::SdkBody;
    use futures::future::BoxFuture;
    use mlflow_api::webhooks::WebhookStatus;
    use secrets::KmsKey;
    use serde_json::json;

    use super::*;

    /// A fake KMS that wraps data keys, but does not respond to requests to unwrap them.
    #[derive(Debug)]
    struct SilentKms;

    impl HttpConnector for SilentKms {
        fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
            if request.headers().get("x-amz-target") != Some("TrentService.GenerateDataKey") {
                return HttpConnectorFuture::new(std::future::pending());
            }
            let body = json!({ "CiphertextBlob": STANDARD.encode("wrapped"), "Plaintext": STANDARD.encode([7; 32]) });
            let status = 200.try_into().unwrap();
            HttpConnectorFuture::ready(Ok(HttpResponse::new(status, SdkBody::from(body.to_string()))))
        }
    }

    #[derive(Debug)]
    struct NobodySends;

    impl Sender for NobodySends {
        fn send<'a>(&'a self, message: Message<'a>) -> BoxFuture<'a, Result<SenderResponse, SendFailure>> {
            panic!("{message:?}");
        }

        fn shows_responses(&self) -> bool {
            false
        }
    }

    #[tokio::test]
    async fn the_time_of_kms_counts_as_time_of_the_attempt() {
        let keys = SecretKeys::Kms(KmsKey::over("key", SilentKms));
        let id = WebhookId::new(1, 2);
        let context = SecretContext { purpose: "webhook", workspace: "default", owner: &id.to_string() };
        let sealed = keys.seal(&Secret::from("s3cret".to_owned()), &context).await.unwrap();
        let webhook = StoredWebhook {
            id,
            name: "hook".to_owned(),
            description: String::new(),
            url: "https://receiver.test/".to_owned(),
            events: Vec::new(),
            unknown_events: Vec::new(),
            status: WebhookStatus::Active,
            secret: Some(sealed.into_bytes()),
            created: 0,
            updated: 0,
            changes: 0,
            imported: None,
        };
        let begin = Moment::now();
        let timeout = Duration::from_millis(50);
        let delivery = ("id".to_owned(), "body");
        let sent = attempt((&NobodySends, &keys), &Workspace::default(), &webhook, delivery, timeout).await;
        assert!(matches!(sent, Err(AttemptFailure::Secret(SecretError::KeyUnavailable(_)))), "{sent:?}");
        // Without the timeout of the attempt, the KMS client would time out after three seconds,
        // and retry several times.
        assert!(begin.age() < Duration::from_secs(3), "{:?}", begin.age());
    }

    /// The expected signature was computed by Python's `hmac` in the same way as MLflow computes
    /// it.
    #[test]
    fn signatures_are_those_of_mlflow() {
        let secret = Secret::from("s3cret".to_owned());
        let signed = signature(&secret, "0a1b2c3d-0000-8000-8000-000000000001", 1_700_000_000, "{\"a\": 1}");
        assert_eq!(signed, SIGNATURE);
    }

    const SIGNATURE: &str = "v1,2P1MtegwAc5FVpUjNLV9DeljgVvThKJA7XqTvBim4PE=";

    #[test]
    fn delivery_ids_are_uuids() {
        assert_eq!(uuid(0), "00000000-0000-8000-8000-000000000000");
        assert_eq!(uuid(u128::MAX), "ffffffff-ffff-8fff-bfff-ffffffffffff");
        let (event, webhook) = (WebhookEventId::new(1, 2), WebhookId::new(3, 4));
        assert_eq!(delivery_id(event, webhook), delivery_id(event, webhook));
        assert_ne!(delivery_id(event, webhook), delivery_id(event, WebhookId::new(3, 5)));
    }

    #[test]
    fn only_some_statuses_are_retried() {
        let of = |status| Outcome::of(Ok(SenderResponse { status, retry_after: None, body: Vec::new() }));
        for status in [200, 204, 299] {
            assert_eq!(of(status), Outcome::Delivered, "{status}");
        }
        for status in RETRIED_STATUSES {
            assert!(matches!(of(status), Outcome::Retry { is_unresponsive: false, .. }), "{status}");
        }
        for status in [100, 301, 307, 400, 404, 410, 501, 599] {
            assert_eq!(of(status), Outcome::Final(format!("status {status}")));
        }
    }
}
