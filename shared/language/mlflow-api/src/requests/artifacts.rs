//! Requests about artifacts.

use crate::messages;

messages! {
    /// The request message of `GET artifacts/list`.
    ListArtifacts {
        run_id: String [Text, Required],
        path: String [Text],
        page_token: String [Text],
        run_uuid: String,
    }
    /// The request message of `GET mlflow-artifacts/artifacts`.
    ListServed {
        path: String,
    }
    /// The request message of `POST mlflow-artifacts/mpu/create/{artifact_path}`.
    CreateMultipart {
        path: String [Required, Text],
        num_parts: i64 [Integer],
    }
    /// A part of a file that has been uploaded.
    Part {
        part_number: i64,
        etag: String,
        url: String,
    }
    /// The request message of `POST mlflow-artifacts/mpu/complete/{artifact_path}`.
    CompleteMultipart {
        path: String [Required, Text],
        upload_id: String [Text],
        parts: Vec<Part> [Required],
    }
    /// The request message of `POST mlflow-artifacts/mpu/abort/{artifact_path}`.
    AbortMultipart {
        path: String [Required, Text],
        upload_id: String [Text],
    }
    /// The request message of `POST artifacts/presigned-upload-url`.
    PresignedUpload {
        run_id: String [Text],
        model_id: String [Text],
        path: String [Required, Text],
        expiration: Option<i64> [Integer],
    }
    /// The request message of `POST artifacts/presigned-download-url`.
    PresignedDownload {
        run_id: String [Required, Text],
        path: String [Required, Text],
        expiration: Option<i64> [Integer],
    }
}
