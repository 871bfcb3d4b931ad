//! Requests to services whose responses, including failures, are scripted by the test.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use aws_smithy_runtime_api::client::http::{HttpConnector, HttpConnectorFuture};
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_runtime_api::client::result::ConnectorError;
use aws_smithy_types::body::SdkBody;

use crate::aws::{AwsError, LambdaClient, MAX_ASYNC_PAYLOAD_BYTES, MAX_PAYLOAD_BYTES};

/// Status, headers and body of a response. `None` stands for a lost response.
type Answer = Option<(u16, &'static [(&'static str, &'static str)], &'static str)>;

const ACCEPTED: Answer = Some((202, &[], ""));
const ANSWERED: Answer = Some((200, &[], "{\"status\":200}"));
const THROTTLED: Answer =
    Some((429, &[("x-amzn-errortype", "TooManyRequestsException:http://x/")], "{\"Reason\":\"x\"}"));
const THROTTLED_IN_BODY: Answer = Some((400, &[], "{\"__type\":\"a.b#ThrottlingException\",\"message\":\"slower\"}"));
const BROKEN: Answer = Some((500, &[("x-amzn-errortype", "ServiceException")], "{\"Message\":\"x\"}"));
const LOST: Answer = None;
const ABSENT: Answer =
    Some((404, &[("x-amzn-errortype", "ResourceNotFoundException:")], "{\"Message\":\"Function not found\"}"));
const TIMEOUT: Duration = Duration::from_secs(5);

#[derive(Clone, Debug, Default)]
struct Script {
    answers: Arc<Mutex<VecDeque<Answer>>>,
    requests: Arc<Mutex<Vec<String>>>,
}

impl HttpConnector for Script {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let header = |name| request.headers().get(name).unwrap_or_default();
        assert!(header("authorization").contains("/r/lambda/aws4_request"), "{}", header("authorization"));
        assert!(header("authorization").contains("x-amz-invocation-type"), "the type is signed");
        assert!(!header("x-amz-content-sha256").is_empty());
        let body = String::from_utf8_lossy(request.body().bytes().unwrap_or_default()).into_owned();
        let kind = header("x-amz-invocation-type");
        self.requests.lock().unwrap().push(format!("{} {} {kind} {body}", request.method(), request.uri()));
        let answer = self.answers.lock().unwrap().pop_front().expect("more requests than expected");
        HttpConnectorFuture::ready(match answer {
            None => Err(ConnectorError::io("the line is dead".into())),
            Some((status, headers, body)) => {
                let mut response = HttpResponse::new(status.try_into().unwrap(), SdkBody::from(body));
                for (name, value) in headers {
                    response.headers_mut().insert(*name, *value);
                }
                Ok(response)
            }
        })
    }
}

/// Returns a client with these responses, and the requests that it sends.
fn lambda(answers: &[Answer]) -> (LambdaClient, Arc<Mutex<Vec<String>>>) {
    let script = Script { answers: Arc::new(Mutex::new(answers.iter().copied().collect())), ..Script::default() };
    (LambdaClient::over(script.clone()), script.requests)
}

#[tokio::test]
async fn an_event_is_queued() {
    let (client, requests) = lambda(&[ACCEPTED]);
    client.invoke_async("stack-deliver", "{}").await.unwrap();
    let url = "https://lambda.r.amazonaws.com/2015-03-31/functions/stack%2Ddeliver/invocations";
    assert_eq!(*requests.lock().unwrap(), [format!("POST {url} Event {{}}")]);
}

#[tokio::test]
async fn an_event_is_sent_again_after_any_transient_failure() {
    let (client, requests) = lambda(&[THROTTLED, THROTTLED_IN_BODY, BROKEN, LOST, ACCEPTED]);
    client.invoke_async("f", "{}").await.unwrap();
    assert_eq!(requests.lock().unwrap().len(), 5);
}

#[tokio::test]
async fn retries_end() {
    let (client, requests) = lambda(&[BROKEN; 6]);
    let error = client.invoke_async("f", "{}").await.unwrap_err();
    assert_eq!(error, AwsError::Unavailable { service: "lambda", cause: "500 ServiceException: x".to_owned() });
    assert_eq!(requests.lock().unwrap().len(), 6);
}

#[tokio::test]
async fn a_permanent_error_is_returned_at_once() {
    let (client, _) = lambda(&[ABSENT]);
    let error = client.invoke_async("f", "{}").await.unwrap_err();
    assert_eq!(error.code(), Some("ResourceNotFoundException"));
    assert_eq!(error.to_string(), "lambda answered 404 ResourceNotFoundException: Function not found");
}

#[tokio::test]
async fn a_function_that_is_waited_for_is_invoked_at_most_once() {
    let (client, requests) = lambda(&[THROTTLED, ANSWERED]);
    assert_eq!(client.invoke("f", "{\"a\":1}", TIMEOUT).await.unwrap(), "{\"status\":200}");
    assert!(requests.lock().unwrap().iter().all(|request| request.ends_with(" RequestResponse {\"a\":1}")));
    for failure in [BROKEN, LOST] {
        let (client, requests) = lambda(&[failure, ANSWERED]);
        let error = client.invoke("f", "{}", TIMEOUT).await.unwrap_err();
        assert!(matches!(error, AwsError::Unavailable { .. }), "{error}");
        assert_eq!(requests.lock().unwrap().len(), 1);
    }
}

#[tokio::test]
async fn the_output_of_a_function_that_failed_is_not_repeated() {
    let failed = Some((200, [("x-amz-function-error", "Unhandled")].as_slice(), "{\"errorMessage\":\"secret\"}"));
    let (client, _) = lambda(&[failed]);
    let error = client.invoke("f", "{}", TIMEOUT).await.unwrap_err();
    assert_eq!(error, AwsError::Function("Unhandled".to_owned()));
}

#[tokio::test]
async fn a_payload_that_lambda_would_refuse_is_not_sent() {
    let (client, requests) = lambda(&[]);
    assert!(client.invoke_async("f", vec![b' '; MAX_ASYNC_PAYLOAD_BYTES + 1]).await.is_err());
    assert!(client.invoke("f", vec![b' '; MAX_PAYLOAD_BYTES + 1], TIMEOUT).await.is_err());
    assert!(requests.lock().unwrap().is_empty());
}

#[tokio::test]
async fn an_error_page_of_another_server_is_no_answer() {
    let page = Some((404, [].as_slice(), "<html>not here</html>"));
    let (client, _) = lambda(&[page]);
    let error = client.invoke("f", "{}", TIMEOUT).await.unwrap_err();
    assert_eq!(error.code(), Some(""));
}
