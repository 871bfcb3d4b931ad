//! The failures that callers of the table have to handle.

use std::error::Error as StdError;
use std::fmt::Write;
use std::io;

use aws_sdk_dynamodb::error::{ProvideErrorMetadata, SdkError};
use aws_sdk_dynamodb::operation::delete_item::DeleteItemError;
use aws_sdk_dynamodb::operation::put_item::PutItemError;
use aws_sdk_dynamodb::operation::transact_write_items::TransactWriteItemsError;
use aws_sdk_dynamodb::operation::update_item::UpdateItemError;
use aws_sdk_dynamodb::types::CancellationReason;
use aws_smithy_runtime_api::client::orchestrator::HttpResponse;
use model::{Error, ErrorCode};

use crate::Item;

/// Result of a call to the table.
pub type Result<T> = std::result::Result<T, Failure>;

/// The reason why the table did not execute a request.
#[derive(Clone, Debug, PartialEq)]
pub enum Failure {
    /// The condition did not hold.
    Refused {
        /// The current item, if it exists.
        item: Option<Item>,
        /// Whether the response to an earlier attempt was lost. If so, that attempt may have
        /// changed the item, and the refusal may be its consequence.
        after_lost_answer: bool,
    },
    /// A condition of the transaction did not hold. There is one reason per write, in the order of
    /// the writes.
    Cancelled(Vec<WriteRefusal>),
    /// The item would exceed DynamoDB's limit of 400 KB.
    TooLarge,
    /// The partition holds 10 GB, the maximum in a table with local indexes.
    PartitionFull,
    /// The partition or the table throttled the request, for longer than [`RetryPolicy`](crate::RetryPolicy)
    /// allows.
    Throttled(String),
    /// The table could not be reached, or other transactions kept the item busy, for longer than
    /// [`RetryPolicy`](crate::RetryPolicy) allows.
    Unavailable(String),
    /// The table cannot be used until an operator intervenes: a permission, the table, an index or
    /// its encryption key is missing or disabled. Repeating the request soon does not help, but the
    /// request itself is not at fault.
    Inaccessible(String),
    /// It is unknown whether [`Table::create`](crate::Table::create) created the item. The creation
    /// must not be repeated.
    Unknown(String),
    /// An item does not match the declaration of its row in `key-schema`.
    Unreadable(String),
    /// Data that the table refers to, but that is stored elsewhere, is missing or damaged. The text is
    /// meant for clients.
    Lost(String),
    /// Any other failure. It indicates a bug in this server.
    Unexpected(String),
}

/// How one write contributed to the cancellation of its transaction.
#[derive(Clone, Debug, PartialEq)]
pub enum WriteRefusal {
    /// The write did not contribute.
    None,
    /// The write's condition did not hold. Holds the current item, if it exists.
    Refused(Option<Item>),
    /// The item would exceed 400 KB.
    TooLarge,
    /// The partition holds 10 GB.
    PartitionFull,
    /// Another transaction was in progress on the item.
    Busy,
    /// The item's partition throttled the request.
    Throttled,
}

impl From<Failure> for Error {
    /// Returns the error that the client receives if the caller of the table does not translate the
    /// failure itself.
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Throttled(cause) => Self::throttled(cause),
            Failure::Unavailable(cause) => Self::unavailable(cause),
            Failure::Unknown(cause) => Self::unknown_outcome(cause),
            Failure::TooLarge => Self::new(ErrorCode::BadRequest, "The entity is larger than the store can hold."),
            Failure::PartitionFull => Self::new(
                ErrorCode::BadRequest,
                "This part of the store (for example the runs of an experiment, its traces of one day, or an evaluation dataset) has \
                 reached its limit of 10 GB. Runs of the experiment can still be ended. Delete runs or the whole experiment and remove \
                 them permanently with `mlflow-serverless gc`, or log to another experiment.",
            ),
            // The caller of the table usually retries refused writes. A refusal gets here if all
            // attempts were refused, because concurrent requests kept changing the same item.
            Failure::Refused { .. } | Failure::Cancelled(_) => Self::unavailable("a condition kept being refused"),
            Failure::Unreadable(what) => Self::internal(format!("{what} cannot be read")),
            Failure::Lost(message) => Self::new(ErrorCode::InternalError, message),
            Failure::Inaccessible(cause) | Failure::Unexpected(cause) => Self::internal(cause),
        }
    }
}

/// The outcome of a failed attempt, which determines whether the request is retried.
pub(crate) enum Outcome {
    /// A retry would not help.
    Final(Failure),
    /// The attempt had no effect, because the table throttled it.
    Throttled(String),
    /// The attempt had no effect, and a retry may succeed.
    Busy(String),
    /// The attempt may have taken effect, because its response was lost.
    Lost(String),
}

/// Errors of the operations that this crate calls.
pub(crate) trait OperationError: ProvideErrorMetadata + StdError + 'static {
    /// Returns the outcome of an error that carries data, such as the current item. Returns `None`
    /// for all other errors.
    fn specific(&self) -> Option<Outcome> {
        None
    }
}

macro_rules! conditional {
    ($($error:ident),+) => {$(
        impl OperationError for $error {
            fn specific(&self) -> Option<Outcome> {
                let Self::ConditionalCheckFailedException(refusal) = self else { return None };
                let item = refusal.item().map(|item| Item(item.clone()));
                Some(Outcome::Final(Failure::Refused { item, after_lost_answer: false }))
            }
        }
    )+};
}
conditional!(PutItemError, UpdateItemError, DeleteItemError);

macro_rules! unconditional {
    ($($error:path),+ $(,)?) => {$(impl OperationError for $error {})+};
}
unconditional!(
    aws_sdk_dynamodb::operation::get_item::GetItemError,
    aws_sdk_dynamodb::operation::batch_get_item::BatchGetItemError,
    aws_sdk_dynamodb::operation::batch_write_item::BatchWriteItemError,
    aws_sdk_dynamodb::operation::query::QueryError,
    aws_sdk_dynamodb::operation::create_table::CreateTableError,
    aws_sdk_dynamodb::operation::describe_table::DescribeTableError,
    aws_sdk_dynamodb::operation::update_time_to_live::UpdateTimeToLiveError,
);

impl OperationError for TransactWriteItemsError {
    fn specific(&self) -> Option<Outcome> {
        let Self::TransactionCanceledException(cancelled) = self else { return None };
        let reasons: Vec<_> = cancelled.cancellation_reasons().iter().map(reason).collect();
        let busy_only = reasons
            .iter()
            .all(|reason| matches!(reason, WriteRefusal::None | WriteRefusal::Busy | WriteRefusal::Throttled));
        Some(if busy_only && reasons.contains(&WriteRefusal::Throttled) {
            Outcome::Throttled("a part of a transaction was throttled".to_owned())
        } else if busy_only && reasons.contains(&WriteRefusal::Busy) {
            Outcome::Busy("transaction conflict".to_owned())
        } else if reasons.contains(&WriteRefusal::TooLarge) {
            Outcome::Final(Failure::TooLarge)
        } else if reasons.contains(&WriteRefusal::PartitionFull) {
            Outcome::Final(Failure::PartitionFull)
        } else if busy_only {
            let codes: Vec<_> = cancelled.cancellation_reasons().iter().filter_map(CancellationReason::code).collect();
            Outcome::Final(Failure::Unexpected(format!("a transaction was cancelled: {}", codes.join(", "))))
        } else {
            Outcome::Final(Failure::Cancelled(reasons))
        })
    }
}

fn reason(reason: &CancellationReason) -> WriteRefusal {
    match reason.code() {
        Some("ConditionalCheckFailed") => WriteRefusal::Refused(reason.item().map(|item| Item(item.clone()))),
        Some("TransactionConflict") => WriteRefusal::Busy,
        Some("ThrottlingError" | "ProvisionedThroughputExceeded") => WriteRefusal::Throttled,
        Some("ItemCollectionSizeLimitExceeded") => WriteRefusal::PartitionFull,
        Some("ValidationError") if reason.message().is_some_and(is_size) => WriteRefusal::TooLarge,
        _ => WriteRefusal::None,
    }
}

fn is_size(message: &str) -> bool {
    message.contains("Item size")
}

/// Checks whether an error means that DynamoDB refuses every request of this kind to the table,
/// whatever its content.
fn is_inaccessible(code: &str, message: &str) -> bool {
    match code {
        // DynamoDB also returns `AccessDeniedException` if the caller may not use the encryption
        // key.
        "AccessDeniedException"
        | "ExpiredTokenException"
        | "InaccessibleEncryptionCredentialsException"
        | "IncompleteSignatureException"
        | "InvalidSignatureException"
        | "MissingAuthenticationTokenException"
        | "ResourceNotFoundException"
        | "UnrecognizedClientException" => true,
        "ValidationException" => message.contains("does not have the specified index") || message.starts_with("KMS "),
        _ => code.starts_with("KMS"),
    }
}

/// Classifies an SDK error as final, throttled, busy or lost.
pub(crate) fn classify<E: OperationError>(error: &SdkError<E, HttpResponse>) -> Outcome {
    let SdkError::ServiceError(service) = error else {
        let text = printed(error);
        return match error {
            SdkError::ConstructionFailure(_) => Outcome::Final(Failure::Unexpected(text)),
            _ if was_never_sent(error) => Outcome::Busy(text),
            // There was no response, or it could not be read. The request may have been executed.
            _ => Outcome::Lost(text),
        };
    };
    let error = service.err();
    if let Some(outcome) = error.specific() {
        return outcome;
    }
    let code = error.code().unwrap_or("unknown error");
    let message = error.message().unwrap_or_default();
    let text = format!("{code}: {message}");
    match code {
        "ThrottlingException" | "ProvisionedThroughputExceededException" | "RequestLimitExceeded" => {
            Outcome::Throttled(text)
        }
        "TransactionConflictException" | "TransactionInProgressException" | "LimitExceededException" => {
            Outcome::Busy(text)
        }
        "ItemCollectionSizeLimitExceededException" => Outcome::Final(Failure::PartitionFull),
        "ValidationException" if is_size(message) => Outcome::Final(Failure::TooLarge),
        _ if is_inaccessible(code, message) => Outcome::Final(Failure::Inaccessible(text)),
        _ if service.raw().status().is_server_error() => Outcome::Lost(text),
        _ => Outcome::Final(Failure::Unexpected(text)),
    }
}

/// Returns the `Display` text of an error and its causes. Their `Debug` output would contain the
/// whole response, including items.
fn printed(error: &(dyn StdError + 'static)) -> String {
    let mut text = error.to_string();
    for cause in causes(error).skip(1) {
        // Writing to a string cannot fail.
        let _ = write!(text, ": {cause}");
    }
    text
}

/// Checks whether the request was never sent because no connection could be made.
fn was_never_sent(error: &(dyn StdError + 'static)) -> bool {
    causes(error).any(|cause| {
        let refused = |error: &io::Error| error.kind() == io::ErrorKind::ConnectionRefused;
        // An error while connecting can come from the DNS lookup, TLS or the connect timeout.
        let connecting = |error: &hyper_util::client::legacy::Error| error.is_connect();
        cause.downcast_ref().is_some_and(refused) || cause.downcast_ref().is_some_and(connecting)
    })
}

/// Returns the chain of causes, starting with the error itself.
fn causes<'a>(error: &'a (dyn StdError + 'static)) -> impl Iterator<Item = &'a (dyn StdError + 'static)> {
    std::iter::successors(Some(error), |error: &&(dyn StdError + 'static)| (*error).source())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_that_cannot_be_used_is_distinguished_from_a_wrong_request() {
        for (code, message) in [
            ("AccessDeniedException", "User is not authorized to perform: dynamodb:GetItem"),
            ("AccessDeniedException", "KMS key access denied error"),
            ("ExpiredTokenException", "The security token included in the request is expired"),
            ("KMSInvalidStateException", "The key is pending deletion"),
            ("ResourceNotFoundException", "Requested resource not found"),
            ("UnrecognizedClientException", "The security token included in the request is invalid"),
            ("ValidationException", "KMS validation error: the key is disabled"),
            ("ValidationException", "The table does not have the specified index: lsi5"),
        ] {
            assert!(is_inaccessible(code, message), "{code}: {message}");
        }
        for (code, message) in [
            ("ValidationException", "One or more parameter values were invalid: a value about KMS "),
            ("SerializationException", "Start of structure or map found where not expected"),
            ("InternalServerError", "Internal server error"),
        ] {
            assert!(!is_inaccessible(code, message), "{code}: {message}");
        }
    }

    #[test]
    fn clients_do_not_learn_why_a_table_cannot_be_used() {
        let cause = "AccessDeniedException: arn:aws:iam::123456789012:role/a is not authorized";
        let (error, other) = (Failure::Inaccessible(cause.to_owned()), Failure::Unexpected(cause.to_owned()));
        let (error, other) = (Error::from(error), Error::from(other));
        assert_eq!((error.code, &error.message), (other.code, &other.message));
        assert!(!error.message.contains("arn:"), "{}", error.message);
    }
}
