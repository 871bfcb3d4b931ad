//! The files of a build that is part of the program. Most are in it compressed, as a browser takes
//! them.

use std::io::Read;

use axum::body::Body;
use axum::extract::Path;
use axum::response::{IntoResponse, Response};
use flate2::read::GzDecoder;
use http::header::{ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_TYPE, ETAG, IF_NONE_MATCH, VARY};
use http::{HeaderMap, HeaderValue, StatusCode};

/// A file of the build.
struct File {
    name: &'static str,
    content: &'static [u8],
    is_gzip: bool,
    tag: &'static str,
}

// The list, in the order of names: build.rs writes it.
include!(concat!(env!("OUT_DIR"), "/files.rs"));

/// `index.html` of the build.
pub(crate) fn page() -> std::io::Result<String> {
    let file = file("index.html").ok_or(std::io::ErrorKind::NotFound)?;
    String::from_utf8(file.plain()?).map_err(std::io::Error::other)
}

/// Any other file.
pub(crate) async fn serve(Path(name): Path<String>, headers: HeaderMap) -> Response {
    let Some(file) = file(&name) else { return StatusCode::NOT_FOUND.into_response() };
    if headers.get(IF_NONE_MATCH).is_some_and(|known| known.as_bytes() == file.tag.as_bytes()) {
        return (StatusCode::NOT_MODIFIED, [(ETAG, file.tag)]).into_response();
    }
    let is_compressed = file.is_gzip && takes_gzip(&headers);
    let body = if is_compressed || !file.is_gzip {
        Body::from(file.content)
    } else {
        match file.plain() {
            Ok(content) => Body::from(content),
            Err(error) => {
                tracing::error!(%error, name, "a file of the user interface cannot be read");
                return StatusCode::INTERNAL_SERVER_ERROR.into_response();
            }
        }
    };
    let kind = mime_guess::from_path(file.name).first_raw().unwrap_or("application/octet-stream");
    let mut response = ([(CONTENT_TYPE, kind), (ETAG, file.tag), (VARY, "accept-encoding")], body).into_response();
    if is_compressed {
        response.headers_mut().insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    }
    response
}

fn file(name: &str) -> Option<&'static File> {
    FILES.binary_search_by(|file| file.name.cmp(name)).ok().map(|position| &FILES[position])
}

impl File {
    fn plain(&self) -> std::io::Result<Vec<u8>> {
        if !self.is_gzip {
            return Ok(self.content.to_vec());
        }
        let mut content = Vec::new();
        GzDecoder::new(self.content).read_to_end(&mut content)?;
        Ok(content)
    }
}

/// Whether a client takes compressed answers. Browsers do.
fn takes_gzip(headers: &HeaderMap) -> bool {
    let accepted = headers.get_all(ACCEPT_ENCODING).into_iter().filter_map(|value| value.to_str().ok());
    accepted.flat_map(|value| value.split(',')).any(|coding| {
        let mut parts = coding.split(';').map(str::trim);
        parts.next() == Some("gzip") && !parts.any(|weight| matches!(weight, "q=0" | "q=0.0" | "q=0.00" | "q=0.000"))
    })
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt;

    use super::*;

    async fn get(name: &str, headers: &[(http::HeaderName, &'static str)]) -> (StatusCode, HeaderMap, Vec<u8>) {
        let headers = headers.iter().map(|(name, value)| (name.clone(), HeaderValue::from_static(value))).collect();
        let (parts, body) = serve(Path(name.to_owned()), headers).await.into_parts();
        (parts.status, parts.headers, body.collect().await.unwrap().to_bytes().to_vec())
    }

    #[tokio::test]
    async fn a_file_is_the_same_compressed_or_not() {
        let file = FILES.iter().find(|file| file.is_gzip && file.name.starts_with("static/js/main.")).unwrap();
        let (status, headers, content) = get(file.name, &[(ACCEPT_ENCODING, "br, gzip;q=0.9")]).await;
        assert_eq!((status, headers["content-encoding"].to_str().unwrap()), (StatusCode::OK, "gzip"));
        assert_eq!(headers["content-type"], "text/javascript");
        let mut inflated = Vec::new();
        GzDecoder::new(&*content).read_to_end(&mut inflated).unwrap();
        let (status, headers, plain) = get(file.name, &[(ACCEPT_ENCODING, "gzip;q=0, br")]).await;
        assert_eq!((status, headers.get("content-encoding"), plain), (StatusCode::OK, None, inflated));
        let (status, ..) = get(file.name, &[(IF_NONE_MATCH, file.tag)]).await;
        assert_eq!(status, StatusCode::NOT_MODIFIED);
    }

    #[tokio::test]
    async fn every_file_is_found_and_no_other() {
        for file in FILES {
            assert_eq!(get(file.name, &[]).await.0, StatusCode::OK, "{}", file.name);
        }
        for name in ["", "static", "../Cargo.toml", "index.html.gz", "missing.js"] {
            assert_eq!(get(name, &[]).await.0, StatusCode::NOT_FOUND, "{name}");
        }
        assert!(page().unwrap().contains("<head>"));
    }
}
