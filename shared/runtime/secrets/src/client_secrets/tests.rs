use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::sync::{Arc, Mutex};

use aws_smithy_runtime_api::client::http::{HttpConnector, HttpConnectorFuture};
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_types::body::SdkBody;

use super::*;

fn directory(content: &[u8], mode: u32) -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("keycloak");
    fs::write(&path, content).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
    directory
}

async fn read(directory: &tempfile::TempDir, provider: &str) -> Result<Secret, ClientSecretError> {
    ClientSecrets::Directory(directory.path().to_owned()).read(provider).await
}

#[tokio::test]
async fn a_secret_is_read_from_the_file_of_its_provider() {
    let directory = directory(b" s3cret~\n", 0o600);
    assert_eq!(read(&directory, "keycloak").await.unwrap().expose(), b"s3cret~");
    let missing = read(&directory, "entra").await.unwrap_err();
    assert!(matches!(missing, ClientSecretError::Missing { .. }), "{missing}");
    assert!(missing.to_string().contains("/entra"), "{missing}");
}

#[tokio::test]
async fn a_file_that_others_may_access_is_refused() {
    for mode in [0o640, 0o604, 0o620, 0o644, 0o666] {
        let error = read(&directory(b"s3cret", mode), "keycloak").await.unwrap_err();
        assert!(error.to_string().contains("chmod 600"), "{mode:o}: {error}");
    }
}

#[tokio::test]
async fn no_secret_is_repeated_in_an_error() {
    let long = [b'x'; MAX_CLIENT_SECRET_BYTES + 1];
    for content in [&b""[..], b" \n", b"s3c\nret", b"s3cr\xc3\xa9t", &long] {
        let error = read(&directory(content, 0o600), "keycloak").await.unwrap_err();
        assert!(matches!(error, ClientSecretError::Malformed { .. }), "{error}");
        assert!(!error.to_string().contains("s3c"), "{error}");
    }
}

#[tokio::test]
async fn a_name_never_leads_out_of_the_directory() {
    let directory = directory(b"s3cret", 0o600);
    for name in ["", ".", "..", "../keycloak", "/etc/passwd", "KEYCLOAK", "a\0"] {
        assert!(matches!(read(&directory, name).await, Err(ClientSecretError::Malformed { .. })), "{name}");
    }
    assert!(matches!(ClientSecrets::None.read("keycloak").await, Err(ClientSecretError::NotConfigured)));
}

#[derive(Clone, Debug)]
struct FakeStore {
    response: (u16, &'static str),
    requests: Arc<Mutex<Vec<String>>>,
}

impl HttpConnector for FakeStore {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        assert_eq!(request.headers().get("x-amz-target"), Some("AmazonSSM.GetParameter"));
        let body = String::from_utf8_lossy(request.body().bytes().unwrap_or_default()).into_owned();
        self.requests.lock().unwrap().push(body);
        let (status, body) = self.response;
        HttpConnectorFuture::ready(Ok(HttpResponse::new(status.try_into().unwrap(), SdkBody::from(body))))
    }
}

async fn of_store(status: u16, body: &'static str) -> (Result<Secret, ClientSecretError>, Vec<String>) {
    let fake = FakeStore { response: (status, body), requests: Arc::default() };
    let secrets = ClientSecrets::ParameterStore(Box::new(ParameterStore::over("/mlflow/s/sign-on", fake.clone())));
    let secret = secrets.read("keycloak").await;
    let requests = fake.requests.lock().unwrap().clone();
    (secret, requests)
}

#[tokio::test]
async fn a_secret_is_read_from_the_parameter_of_its_provider() {
    let (secret, requests) = of_store(200, r#"{"Parameter": {"Value": "s3cret", "Type": "SecureString"}}"#).await;
    assert_eq!(secret.unwrap().expose(), b"s3cret");
    assert_eq!(requests, [r#"{"Name":"/mlflow/s/sign-on/keycloak","WithDecryption":true}"#]);
}

#[tokio::test]
async fn errors_of_parameter_store_name_the_parameter() {
    let (missing, _) = of_store(400, r#"{"__type": "ParameterNotFound"}"#).await;
    let missing = missing.unwrap_err();
    assert!(matches!(missing, ClientSecretError::Missing { .. }), "{missing}");
    let (denied, _) = of_store(400, r#"{"__type": "AccessDeniedException", "Message": "no"}"#).await;
    let denied = denied.unwrap_err();
    assert!(matches!(denied, ClientSecretError::Unavailable { .. }), "{denied}");
    let (broken, _) = of_store(200, "{}").await;
    for error in [missing, denied, broken.unwrap_err()] {
        assert!(error.to_string().contains("/mlflow/s/sign-on/keycloak"), "{error}");
    }
}
