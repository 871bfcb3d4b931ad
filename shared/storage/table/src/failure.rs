//! The failures that a caller of the table has to decide on.

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

/// Why the table did not execute a request.
#[derive(Clone, Debug, PartialEq)]
pub enum Failure {
    /// The condition did not hold.
    Refused {
        /// The item as it is, if there is one.
        item: Option<Item>,
        /// An earlier attempt's answer was lost, so that it may have been our own write that changed the item.
        after_lost_answer: bool,
    },
    /// A condition of the transaction did not hold; one reason per part, in their order.
    Cancelled(Vec<Reason>),
    /// The item would be larger than DynamoDB's 400 KB.
    TooLarge,
    /// The partition holds 10 GB, the most one with local indexes can.
    PartitionFull,
    /// The partition, or the table, had no throughput left for it, for longer than [`Retry`](crate::Retry) says.
    Throttled(String),
    /// The table was away, or others had the item, for longer than we were willing to wait.
    Unavailable(String),
    /// Nobody knows whether [`Table::create`](crate::Table::create) made something new: it must not be repeated.
    Unknown(String),
    /// An item is not as its row declares.
    Unreadable(String),
    /// Anything else; a defect of ours.
    Unexpected(String),
}

/// The part that one write of a transaction had in its cancellation.
#[derive(Clone, Debug, PartialEq)]
pub enum Reason {
    /// Nothing.
    None,
    /// Its condition did not hold; with the item as it is, if there is one.
    Refused(Option<Item>),
    /// The item would be larger than 400 KB.
    TooLarge,
    /// The partition holds 10 GB.
    PartitionFull,
    /// Another transaction had the item.
    Busy,
    /// Its partition had no throughput left.
    Throttled,
}

impl From<Failure> for Error {
    /// The client's error where the caller of the table had no better one.
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Throttled(cause) => Self::throttled(cause),
            Failure::Unavailable(cause) => Self::unavailable(cause),
            Failure::Unknown(cause) => Self::unknown_outcome(cause),
            Failure::TooLarge => Self::new(ErrorCode::BadRequest, "The entity is larger than the store can hold."),
            Failure::PartitionFull => Self::new(
                ErrorCode::BadRequest,
                "This part of the store has reached the 10 GB that it can hold, such as the runs of an experiment, its traces of a day, or an \
                 evaluation dataset. Runs of an experiment can still be ended. Delete runs of it or the whole experiment, and have them \
                 removed for good with `mlflow-serverless gc`, or log to another experiment.",
            ),
            // Nobody handled the refusal: somebody else is changing the same item all the time.
            Failure::Refused { .. } | Failure::Cancelled(_) => Self::unavailable("a condition kept being refused"),
            Failure::Unreadable(what) => Self::internal(format!("{what} cannot be read")),
            Failure::Unexpected(cause) => Self::internal(cause),
        }
    }
}

/// An attempt's outcome, as far as trying again is concerned.
pub(crate) enum Outcome {
    /// Final.
    Final(Failure),
    /// The attempt had no effect: the table has too much to do.
    Throttled(String),
    /// The attempt had no effect; another may succeed.
    Busy(String),
    /// The attempt may have had its effect.
    Lost(String),
}

/// Errors of the operations this crate calls.
pub(crate) trait OperationError: ProvideErrorMetadata + StdError + 'static {
    /// The failure that carries data of its own.
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
        let busy_only = reasons.iter().all(|reason| matches!(reason, Reason::None | Reason::Busy | Reason::Throttled));
        Some(if busy_only && reasons.contains(&Reason::Throttled) {
            Outcome::Throttled("a part of a transaction was throttled".to_owned())
        } else if busy_only && reasons.contains(&Reason::Busy) {
            Outcome::Busy("transaction conflict".to_owned())
        } else if reasons.contains(&Reason::TooLarge) {
            Outcome::Final(Failure::TooLarge)
        } else if reasons.contains(&Reason::PartitionFull) {
            Outcome::Final(Failure::PartitionFull)
        } else if busy_only {
            let codes: Vec<_> = cancelled.cancellation_reasons().iter().filter_map(CancellationReason::code).collect();
            Outcome::Final(Failure::Unexpected(format!("a transaction was cancelled: {}", codes.join(", "))))
        } else {
            Outcome::Final(Failure::Cancelled(reasons))
        })
    }
}

fn reason(reason: &CancellationReason) -> Reason {
    match reason.code() {
        Some("ConditionalCheckFailed") => Reason::Refused(reason.item().map(|item| Item(item.clone()))),
        Some("TransactionConflict") => Reason::Busy,
        Some("ThrottlingError" | "ProvisionedThroughputExceeded") => Reason::Throttled,
        Some("ItemCollectionSizeLimitExceeded") => Reason::PartitionFull,
        Some("ValidationError") if reason.message().is_some_and(is_size) => Reason::TooLarge,
        _ => Reason::None,
    }
}

fn is_size(message: &str) -> bool {
    message.contains("Item size")
}

/// Sorts an SDK error into final, throttled, busy and lost.
pub(crate) fn classify<E: OperationError>(error: &SdkError<E, HttpResponse>) -> Outcome {
    let SdkError::ServiceError(service) = error else {
        let text = printed(error);
        return match error {
            SdkError::ConstructionFailure(_) => Outcome::Final(Failure::Unexpected(text)),
            _ if was_never_sent(error) => Outcome::Busy(text),
            // No answer, or none that could be read: the request may have arrived.
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
        _ if service.raw().status().is_server_error() => Outcome::Lost(text),
        _ => Outcome::Final(Failure::Unexpected(text)),
    }
}

/// An error and its causes, as they print themselves. Their `Debug` has the whole answer, items and
/// all.
fn printed(error: &(dyn StdError + 'static)) -> String {
    let mut text = error.to_string();
    for cause in causes(error).skip(1) {
        // Writing to a string does not fail.
        let _ = write!(text, ": {cause}");
    }
    text
}

/// Whether there was no connection to send the request on.
fn was_never_sent(error: &(dyn StdError + 'static)) -> bool {
    causes(error).any(|cause| {
        let refused = |error: &io::Error| error.kind() == io::ErrorKind::ConnectionRefused;
        // Looking up the name, TLS and the time limit of connecting are part of it.
        let connecting = |error: &hyper_util::client::legacy::Error| error.is_connect();
        cause.downcast_ref().is_some_and(refused) || cause.downcast_ref().is_some_and(connecting)
    })
}

/// The error, its cause, the cause of that, and so on.
fn causes<'a>(error: &'a (dyn StdError + 'static)) -> impl Iterator<Item = &'a (dyn StdError + 'static)> {
    std::iter::successors(Some(error), |error: &&(dyn StdError + 'static)| (*error).source())
}
