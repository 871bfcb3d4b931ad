//! Requests for a file, and files as responses.

use artifact_store::{ArtifactPath, DOWNLOAD_EXPIRATION, Download, Location, StoredFile};
use mlflow_api::{Error, ErrorCode, Request, Result};
use service::{Attachment, EndpointResponse, FileUrl};

/// Reads the path of the requested file from the query string.
///
/// # Errors
/// `BAD_REQUEST` with MLflow's message if the query string has no path, and the errors of
/// [`ArtifactPath::parse`].
pub fn path_argument(request: &Request) -> Result<ArtifactPath> {
    let path = request
        .argument("path")
        .ok_or_else(|| Error::new(ErrorCode::BadRequest, "Request must include the \"path\" query parameter."))?;
    ArtifactPath::parse(path)
}

/// Returns a file of a location as a response: its content, or a redirect to its URL.
///
/// # Errors
/// The errors of the backend.
pub async fn send_file(location: &Location, path: &ArtifactPath) -> Result<EndpointResponse> {
    Ok(match location.download(path).await? {
        Download::File(StoredFile { name, content_type, length, tag, read }) => {
            EndpointResponse::Attachment(Attachment::new(&name, content_type, length, tag, read))
        }
        Download::Url(url) => EndpointResponse::TemporaryRedirect(url),
    })
}

/// Returns a file as [`send_file`] does, or its URL as JSON, if `presigned` is set and the backend
/// has URLs.
///
/// # Errors
/// The errors of the backend.
pub async fn send_file_or_url(location: &Location, path: &ArtifactPath, presigned: bool) -> Result<EndpointResponse> {
    if !presigned || !location.has_urls() {
        return send_file(location, path).await;
    }
    let found = location.download_url(path, DOWNLOAD_EXPIRATION, "Presigned download").await?;
    EndpointResponse::json(&FileUrl::new(found.url, found.length))
}
