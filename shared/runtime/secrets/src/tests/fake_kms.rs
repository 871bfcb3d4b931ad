//! A simulated KMS with one key.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use aws_smithy_runtime_api::client::http::{HttpConnector, HttpConnectorFuture};
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_types::body::SdkBody;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

#[derive(Clone, Debug, Default)]
pub(crate) struct FakeKms {
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    /// Data keys and the contexts that they were created with, by their wrapped form.
    keys: HashMap<String, (String, Value)>,
    /// The requests so far: operation (`X-Amz-Target`) and body.
    requests: Vec<(String, String)>,
    response: Option<(u16, String)>,
}

impl FakeKms {
    pub(crate) fn requests(&self) -> Vec<(String, String)> {
        self.state.lock().unwrap().requests.clone()
    }

    /// Makes all further requests fail with this status and error code.
    pub(crate) fn fail(&self, status: u16, code: &str) {
        let body = json!({"__type": code, "message": "no"}).to_string();
        self.state.lock().unwrap().response = Some((status, body));
    }

    /// Makes all further requests succeed with this body.
    pub(crate) fn respond_with(&self, body: &str) {
        self.state.lock().unwrap().response = Some((200, body.to_owned()));
    }

    pub(crate) fn recover(&self) {
        self.state.lock().unwrap().response = None;
    }
}

impl State {
    fn respond(&mut self, target: &str, request: &Value) -> (u16, String) {
        if let Some(response) = &self.response {
            return response.clone();
        }
        let context = request["EncryptionContext"].clone();
        assert_eq!(request["KeyId"], "arn:key");
        if target == "TrentService.GenerateDataKey" {
            let number = u8::try_from(self.keys.len()).unwrap();
            let (clear, wrapped) =
                (STANDARD.encode([number; 32]), STANDARD.encode([&[0xaa; 150][..], &[number]].concat()));
            self.keys.insert(wrapped.clone(), (clear.clone(), context));
            return (200, json!({"CiphertextBlob": wrapped, "KeyId": "arn:key", "Plaintext": clear}).to_string());
        }
        assert_eq!(target, "TrentService.Decrypt");
        match self.keys.get(request["CiphertextBlob"].as_str().unwrap()) {
            Some((clear, bound)) if *bound == context => {
                (200, json!({"KeyId": "arn:key", "Plaintext": clear}).to_string())
            }
            _ => (400, json!({"__type": "InvalidCiphertextException"}).to_string()),
        }
    }
}

impl HttpConnector for FakeKms {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let header = |name| request.headers().get(name).unwrap_or_default().to_owned();
        assert!(header("authorization").contains("/kms/aws4_request"));
        assert_eq!(header("content-type"), "application/x-amz-json-1.1");
        assert_eq!((request.method(), request.uri()), ("POST", "https://kms.r.amazonaws.com/"));
        let target = header("x-amz-target");
        let body = String::from_utf8(request.body().bytes().unwrap().to_vec()).unwrap();
        let mut state = self.state.lock().unwrap();
        let (status, response) = state.respond(&target, &serde_json::from_str(&body).unwrap());
        state.requests.push((target, body));
        HttpConnectorFuture::ready(Ok(HttpResponse::new(status.try_into().unwrap(), SdkBody::from(response))))
    }
}
