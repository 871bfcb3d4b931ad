//! Errors about archives.

use mlflow_api::skills::ContentLimits;
use mlflow_api::{Error, ErrorCode};

/// Returns the error for an archive that cannot be read.
pub(super) fn malformed() -> Error {
    Error::invalid("'content.tar.gz' is not a readable tar archive.")
}

/// Returns the error for an archive with more than this number of bytes that are no content.
pub(super) fn too_large_metadata(limits: ContentLimits, most: usize) -> Error {
    let message = format!(
        "Archive metadata decompresses to more than {most} bytes, which exceeds the allowance for tar headers."
    );
    too_large(limits, &message)
}

/// Returns the error for an archive whose content is too large.
pub(super) fn too_large_content(limits: ContentLimits) -> Error {
    let message = format!("Archive content exceeds the skill content size limit of {} bytes.", limits.bytes);
    too_large(limits, &message)
}

/// Returns the error for an archive that exceeds a limit. MLflow has no such limits as those of a
/// Lambda.
pub(super) fn too_large(limits: ContentLimits, message: &str) -> Error {
    let code =
        if limits == ContentLimits::LAMBDA { ErrorCode::RequestTooLarge } else { ErrorCode::InvalidParameterValue };
    Error::new(code, message)
}
