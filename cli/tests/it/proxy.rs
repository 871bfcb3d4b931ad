//! `mlflow-serverless proxy`, over a test API that verifies signatures.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::{Arc, Mutex};
use std::time::SystemTime;

use aws_sigv4::sign::v4::{calculate_signature, generate_signing_key};
use axum::Router;
use axum::body::to_bytes;
use axum::extract::Request;
use axum::response::{IntoResponse, Response};
use http::{HeaderMap, StatusCode};
use sha2::{Digest, Sha256};
use tokio::net::TcpListener;

use crate::program::{PATIENCE, Program, refusal};

const REGION: &str = "eu-test-1";
const SECRET: &str = "secret/of+caller";
const KEYS: [(&str, &str); 5] = [
    ("AWS_ACCESS_KEY_ID", "AKIDCALLER"),
    ("AWS_SECRET_ACCESS_KEY", SECRET),
    ("AWS_SESSION_TOKEN", "token/of+caller="),
    ("AWS_REGION", REGION),
    ("AWS_EC2_METADATA_DISABLED", "true"),
];

/// A request received by a test server.
#[derive(Clone, Debug)]
struct Got {
    method: String,
    target: String,
    headers: HeaderMap,
    body: Vec<u8>,
}

impl Got {
    fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    fn has_signature(&self) -> bool {
        self.headers.keys().any(|name| name == "authorization" || name.as_str().starts_with("x-amz-"))
    }

    /// Returns whether the request has a valid signature for API Gateway, by the specification of
    /// Signature Version 4. The target must only contain bytes with an unambiguous encoding.
    fn is_signed(&self) -> Option<bool> {
        let authorization = self.header("authorization")?.strip_prefix("AWS4-HMAC-SHA256 Credential=AKIDCALLER/")?;
        let [scope, signed, signature] = authorization.split(", ").collect::<Vec<_>>().try_into().ok()?;
        let (signed, signature) = (signed.strip_prefix("SignedHeaders=")?, signature.strip_prefix("Signature=")?);
        let date = self.header("x-amz-date")?;
        assert_eq!(scope, format!("{}/{REGION}/execute-api/aws4_request", &date[..8]));
        let (path, query) = self.target.split_once('?').unwrap_or((&self.target, ""));
        let mut query: Vec<_> = query.split('&').collect();
        query.sort_unstable();
        let headers: Vec<_> =
            signed.split(';').map(|name| format!("{name}:{}\n", self.header(name).unwrap())).collect();
        let canonical = format!(
            "{}\n{}\n{}\n{}\n{signed}\n{}",
            self.method,
            path.replace('%', "%25"),
            query.join("&"),
            headers.concat(),
            hex(&Sha256::digest(&self.body)),
        );
        let text = format!("AWS4-HMAC-SHA256\n{date}\n{scope}\n{}", hex(&Sha256::digest(&canonical)));
        let key = generate_signing_key(SECRET, SystemTime::now(), REGION, "execute-api");
        Some(calculate_signature(key, text.as_bytes()) == signature)
    }
}

fn hex(bytes: &[u8]) -> String {
    let digits: Vec<_> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    digits.concat()
}

/// A test server.
struct Server {
    url: String,
    got: Arc<Mutex<Vec<Got>>>,
}

impl Server {
    async fn start(answer: impl Fn(&Got) -> Response + Clone + Send + Sync + 'static) -> Self {
        let got = Arc::<Mutex<Vec<Got>>>::default();
        let kept = Arc::clone(&got);
        let app = Router::new().fallback(move |request: Request| {
            let (answer, kept) = (answer.clone(), Arc::clone(&kept));
            async move {
                let (parts, body) = request.into_parts();
                let body = to_bytes(body, usize::MAX).await.unwrap().to_vec();
                let target = parts.uri.to_string();
                let got = Got { method: parts.method.to_string(), target, headers: parts.headers, body };
                kept.lock().unwrap().push(got.clone());
                answer(&got)
            }
        });
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(async move { axum::serve(listener, app).await });
        Self { url, got }
    }

    /// Takes the requests received since the last call.
    fn got(&self) -> Vec<Got> {
        std::mem::take(&mut self.got.lock().unwrap())
    }
}

/// The program in front of an API, and its one-time URL.
struct Proxy {
    _program: Program,
    address: String,
    opening: String,
}

/// A response, with header names in lower case.
struct Answer {
    status: u16,
    headers: BTreeMap<String, String>,
    body: String,
}

impl Proxy {
    fn start(api: &str) -> Self {
        let program = Program::with(&["proxy", "--tracking-uri", api, "--port", "0"], &KEYS);
        let url = program.line();
        let (address, opening) = url.strip_prefix("http://").unwrap().split_once('/').unwrap();
        let (address, opening) = (address.to_owned(), format!("/{opening}"));
        assert!(address.starts_with("127.0.0.1:") && opening.len() > 40, "{url}");
        Self { _program: program, address, opening }
    }

    /// Starts the program, opens its one-time URL, and returns the cookie.
    fn opened(api: &str) -> (Self, String) {
        let proxy = Self::start(api);
        let opened = proxy.send("GET", &proxy.opening, "", "");
        assert_eq!((opened.status, opened.headers["location"].as_str()), (303, "/"));
        let cookie = opened.headers["set-cookie"].split(';').next().unwrap().to_owned();
        (proxy, format!("cookie: {cookie}\r\n"))
    }

    fn send(&self, method: &str, target: &str, headers: &str, body: &str) -> Answer {
        let head = format!("host: {}\r\ncontent-length: {}\r\n{headers}", self.address, body.len());
        self.send_raw(&format!("{method} {target} HTTP/1.1\r\nconnection: close\r\n{head}\r\n{body}"))
    }

    fn send_raw(&self, request: &str) -> Answer {
        let mut connection = TcpStream::connect(&self.address).unwrap();
        connection.set_read_timeout(Some(PATIENCE)).unwrap();
        connection.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        if let Err(error) = connection.read_to_string(&mut answer) {
            panic!("{error} after {answer:?} to {request:.300}");
        }
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        let mut lines = head.lines();
        let status = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
        let headers = lines.filter_map(|line| line.split_once(": "));
        let headers = headers.map(|(name, value)| (name.to_lowercase(), value.to_owned())).collect();
        Answer { status, headers, body: body.to_owned() }
    }
}

/// Creates a response with this status and these headers.
fn said(status: u16, headers: &[(&'static str, &str)], body: &str) -> Response {
    let mut response = (StatusCode::from_u16(status).unwrap(), body.to_owned()).into_response();
    for (name, value) in headers {
        response.headers_mut().insert(*name, value.parse().unwrap());
    }
    response
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_are_signed_and_tell_the_api_nothing_of_the_browser() {
    let api = Server::start(|got| match got.is_signed() {
        Some(true) => said(200, &[("content-type", "text/plain"), ("set-cookie", "a=b")], "signed"),
        outcome => said(500, &[], &format!("{outcome:?} {got:?}")),
    })
    .await;
    let (proxy, cookie) = Proxy::opened(&api.url);
    let own = format!("{cookie}origin: http://{}\r\nsec-fetch-site: same-origin\r\n", proxy.address);
    for (method, target, body, expected) in [
        ("GET", "/", "", "/"),
        ("GET", "/a%20b=c@%C3%A9.txt", "", "/a%20b%3Dc%40%C3%A9.txt"),
        (
            "GET",
            "/s?filter=a+%3D+'b'&order_by=z&order_by=a&x",
            "",
            "/s?filter=a%20%3D%20%27b%27&order_by=z&order_by=a&x=",
        ),
        ("POST", "/ajax-api/2.0/mlflow/runs/search", "{}", "/ajax-api/2.0/mlflow/runs/search"),
        ("PATCH", "/p", "", "/p"),
        ("DELETE", "/d", "{}", "/d"),
    ] {
        let answer = proxy.send(method, target, &format!("{own}content-type: application/json\r\n"), body);
        assert_eq!((answer.status, answer.body.as_str()), (200, "signed"), "{method} {target}");
        assert!(!answer.headers.contains_key("set-cookie"));
        let [got] = api.got().try_into().unwrap();
        assert_eq!((got.target.as_str(), got.body.as_slice()), (expected, body.as_bytes()));
        assert_eq!(format!("http://{}", got.header("host").unwrap()), api.url);
        assert_eq!(got.header("sec-fetch-site"), Some("same-origin"));
        assert!(!["cookie", "origin", "connection"].iter().any(|name| got.headers.contains_key(*name)), "{got:?}");
    }
    let odd = proxy.send("GET", "/s?x=%FF", &cookie, "");
    assert_eq!((odd.status, api.got().len()), (400, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_but_the_browser_that_opened_the_url_is_answered() {
    let api = Server::start(|_| said(200, &[], "in")).await;
    let proxy = Proxy::start(&api.url);
    let Proxy { address, opening, .. } = &proxy;
    for target in ["/", "/health", "/version", "/open/", "/ajax-api/2.0/mlflow/experiments/search"] {
        assert_eq!(proxy.send("GET", target, "", "").status, 403, "{target}");
    }
    // Requests from pages of other sites, and HEAD requests, do not spend the URL.
    assert_eq!(proxy.send("HEAD", opening, "", "").status, 403);
    for headers in ["sec-fetch-site: cross-site\r\nsec-fetch-mode: navigate\r\n", "origin: https://evil.example\r\n"] {
        assert_eq!(proxy.send("GET", opening, headers, "").status, 403, "{headers}");
    }
    let rebound = proxy.send_raw(&format!("GET {opening} HTTP/1.1\r\nconnection: close\r\nhost: evil.example\r\n\r\n"));
    assert_eq!((rebound.status, rebound.headers.contains_key("set-cookie")), (403, false));

    let opened = proxy.send("GET", opening, "sec-fetch-site: none\r\n", "");
    assert_eq!((opened.status, opened.headers["location"].as_str(), opened.body.as_str()), (303, "/", ""));
    let (cookie, rest) = opened.headers["set-cookie"].split_once("; ").unwrap();
    let port = address.rsplit(':').next().unwrap();
    assert!(cookie.starts_with(&format!("mlflow_proxy_{port}=")), "{cookie}");
    assert_eq!(rest, "Path=/; HttpOnly; SameSite=Strict");
    let again = proxy.send("GET", opening, "", "");
    assert_eq!((again.status, again.headers.contains_key("set-cookie")), (403, false));
    assert!(again.body.contains("has been opened before"), "{}", again.body);

    let cookie = format!("cookie: {cookie}\r\n");
    assert_eq!(proxy.send("GET", "/", &cookie, "").body, "in");
    assert_eq!(api.got().len(), 1);
    for headers in
        ["origin: https://evil.example\r\n", "sec-fetch-site: cross-site\r\n", "sec-fetch-site: same-site\r\n"]
    {
        assert_eq!(proxy.send("POST", "/graphql", &format!("{cookie}{headers}"), "{}").status, 403, "{headers}");
    }
    let strange = proxy.send("GET", "/", "", "");
    assert!(strange.body.contains("the browser that opened the one-time URL"), "{}", strange.body);
    assert_eq!(api.got().len(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn redirects_to_a_bucket_are_followed_without_the_signature() {
    let bucket = Server::start(|got| match got.target.as_str() {
        "/moved?X-Amz-Signature=1" => said(307, &[("location", "/key?X-Amz-Signature=2")], ""),
        "/circle" => said(307, &[("location", "/circle")], ""),
        "/away" => said(307, &[("location", "http://192.0.2.1/")], ""),
        "/missing" => said(404, &[], "<Error><AWSAccessKeyId>ASIAFUNCTION</AWSAccessKeyId></Error>"),
        _ => said(
            206,
            &[
                ("content-type", "text/html"),
                ("etag", "\"t\""),
                ("set-cookie", "a=b"),
                ("content-range", "bytes 0-1/9"),
            ],
            "ab",
        ),
    })
    .await;
    let storage = bucket.url.clone();
    let api = Server::start(move |got| {
        let to = |place: &str| said(307, &[("location", place)], "");
        match got.target.as_str() {
            "/relative" => said(303, &[("location", "/signin")], ""),
            "/own" => to(&format!("http://{}/elsewhere?a=b", got.header("host").unwrap())),
            "/outside" => to("http://192.0.2.1/"),
            "/file-scheme" => to("file:///etc/passwd"),
            "/user" => to(&storage.replace("http://", "http://user@")),
            path @ ("/circle" | "/away" | "/missing") => to(&format!("{storage}{path}")),
            path => to(&format!("{storage}{path}?X-Amz-Signature=1")),
        }
    })
    .await;
    let (proxy, cookie) = Proxy::opened(&api.url);
    let asked = format!("{cookie}range: bytes=0-1\r\nx-mlflow-workspace: team\r\n");
    for (method, path, body, expected) in [
        ("GET", "/key", "", &["/key?X-Amz-Signature=1"][..]),
        ("PUT", "/moved", "content", &["/moved?X-Amz-Signature=1", "/key?X-Amz-Signature=2"]),
        ("PUT", "/empty", "", &["/empty?X-Amz-Signature=1"]),
    ] {
        let answer = proxy.send(method, path, &asked, body);
        assert_eq!((answer.status, answer.body.as_str()), (206, "ab"), "{path}");
        assert_eq!(answer.headers["content-range"], "bytes 0-1/9");
        assert_eq!(answer.headers["content-disposition"], "attachment");
        assert_eq!(answer.headers["content-security-policy"], "sandbox; default-src 'none'");
        assert!(!answer.headers.contains_key("set-cookie"));
        let got = bucket.got();
        assert_eq!(got.iter().map(|got| got.target.as_str()).collect::<Vec<_>>(), expected);
        for got in got {
            assert_eq!(
                (got.method.as_str(), got.body.as_slice(), got.header("range")),
                (method, body.as_bytes(), Some("bytes=0-1"))
            );
            assert!(
                !got.has_signature()
                    && !got.headers.contains_key("cookie")
                    && !got.headers.contains_key("x-mlflow-workspace"),
                "{got:?}"
            );
            let length = (method == "PUT").then(|| body.len().to_string());
            assert_eq!(got.header("content-length"), length.as_deref());
        }
    }
    for path in ["/circle", "/away", "/outside", "/file-scheme", "/user"] {
        let answer = proxy.send("GET", path, &cookie, "");
        assert_eq!(answer.status, 502, "{path}");
        assert!(answer.body.contains("redirects to a URL that this proxy does not follow"), "{}", answer.body);
    }
    assert_eq!(bucket.got().len(), 4);
    let missing = proxy.send("GET", "/missing", &cookie, "");
    assert_eq!(missing.status, 404);
    assert!(
        missing.body.contains("The file is not in the bucket") && !missing.body.contains("ASIA"),
        "{}",
        missing.body
    );
    bucket.got();
    for (path, location) in [("/relative", "/signin"), ("/own", "/elsewhere?a=b")] {
        assert_eq!(proxy.send("GET", path, &cookie, "").headers["location"], location);
    }
    assert_eq!(bucket.got().len(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn failures_say_what_to_do() {
    let api = Server::start(|got| match got.target.as_str() {
        "/refused" => said(403, &[("content-type", "application/json")], r#"{"message":"Forbidden: arn:aws:inner"}"#),
        "/expired" => said(403, &[], r#"{"message":"The security token included in the request is expired"}"#),
        _ => said(403, &[], r#"{"error_code":"PERMISSION_DENIED","message":"Permission denied"}"#),
    })
    .await;
    let (proxy, cookie) = Proxy::opened(&api.url);
    for (path, sentence) in [
        ("/refused", "allow execute-api:Invoke on this API"),
        ("/expired", "have expired. Sign in to AWS again"),
        ("/by-a-function", r#""message":"Permission denied""#),
    ] {
        let answer = proxy.send("GET", path, &cookie, "");
        assert_eq!(answer.status, 403);
        assert!(answer.body.contains(sentence) && !answer.body.contains("arn:aws"), "{path}: {}", answer.body);
    }
    api.got();
    let head = format!("host: {}\r\ncontent-length: {}\r\n{cookie}", proxy.address, (10 << 20) + 1);
    let long = proxy.send_raw(&format!("PUT /a HTTP/1.1\r\nconnection: close\r\n{head}\r\n"));
    assert_eq!((long.status, long.body.contains("10485760 bytes")), (413, true));
    assert_eq!(proxy.send("TRACE", "/", &cookie, "").status, 405);
    assert_eq!(api.got().len(), 0);

    // The port is reserved without a listener, so that no other process responds on it.
    let reserved = tokio::net::TcpSocket::new_v4().unwrap();
    reserved.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let gone = reserved.local_addr().unwrap();
    let (proxy, cookie) = Proxy::opened(&format!("http://{gone}"));
    let answer = proxy.send("GET", "/", &cookie, "");
    assert_eq!(answer.status, 502);
    assert!(answer.body.contains(&format!("http://{gone} cannot be reached")), "{}", answer.body);
}

#[test]
fn a_proxy_that_cannot_work_does_not_start() {
    let api = "https://a1.execute-api.eu-central-1.amazonaws.com";
    for (arguments, environment, sentence) in [
        (&["--tracking-uri", api, "--host", "0.0.0.0"][..], &KEYS[..], "it must be a loopback address"),
        (&["--tracking-uri", api, "--host", "192.168.1.7"], &KEYS, "it must be a loopback address"),
        (&["--tracking-uri", "http://a1.example"], &KEYS, "the URL has to start with https://"),
        (&["--tracking-uri", "https://a1.example/prod"], &KEYS, "the API of a stack has no path"),
        (&["--tracking-uri", "databricks"], &KEYS, "expected a URL such as https://API_ID"),
        (&[], &KEYS, "--tracking-uri"),
        (&["--tracking-uri", api], &KEYS[4..], "no AWS credentials found for https://a1.execute-api"),
        (&["--tracking-uri", "https://ml.example"], &KEYS[..2], "does not contain an AWS region"),
    ] {
        let said = refusal(&[&["proxy"], arguments].concat(), environment);
        assert!(said.contains(sentence), "{arguments:?}: {said}");
    }
}
