//! The function that sends events of the model registry to webhooks.
//!
//! The indexer invokes it when events have arrived, and when the scheduled tick finds that
//! deliveries are due, for example after a failed attempt. The function `webhooks` invokes it to
//! test a webhook. It serves no routes, and reads neither the stream nor an index. Its permissions
//! are limited to partitions that begin with `HOOK#`, because it is the only function that connects
//! to addresses that users have chosen.
//!
//! Begin reading with [`deliverer`](Deliverer). `docs/design/webhooks.md` describes the rows that
//! it reads and writes, and how an event gets from the registry to a receiver.
//!
//! | module | what it does |
//! |---|---|
//! | `deliverer` | handles an invocation: delivers from up to ten queues at a time, or makes a test |
//! | `queue_delivery` | delivers the events of one queue, oldest first |
//! | `attempt` | makes one attempt: opens the secret, signs, sends, and classifies the response |
//! | `context` | the table, the sender and the keys |
//! | `retry_times` | when a failed delivery is attempted again |
//! | `sender` | sends a request, with the crate `outbound` or a simulation |
//! | `shutdown` | ends attempts when the process of a local server ends |
//! | `local` | runs the function in the process of a local server |

mod attempt;
mod context;
mod declaration;
mod deliverer;
mod local;
mod queue_delivery;
mod retry_times;
mod sender;
mod shutdown;

pub use declaration::FUNCTION;
pub use deliverer::{Deliverer, DelivererEvent};
pub use local::LocalDeliverer;
pub use sender::{Message, OutboundSender, SendFailure, Sender, SenderResponse};
