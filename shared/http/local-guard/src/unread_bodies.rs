//! Handling of request bodies that are still unread when the response is ready. Dropping such a
//! body closes the connection without notice, and a client that is still sending loses the
//! response.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Error;
use axum::body::{Body, Bytes};
use axum::extract::Request;
use axum::middleware::Next;
use axum::response::Response;
use http::HeaderValue;
use http::header::{CONNECTION, EXPECT};
use http_body::{Body as _, Frame, SizeHint};
use http_body_util::BodyExt;
use tokio::time::timeout;

/// Maximum number of unread bytes of a body that are read and discarded.
const MAX_DRAINED_BYTES: u64 = 1 << 20;
/// Maximum time to read and discard the unread rest of a body.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(2);

/// Returns the response after the unread rest of the request's body has been read and discarded, if
/// the rest is short. Otherwise, the response announces that the connection will be closed.
pub(crate) async fn drain_and_respond(request: Request, next: Next) -> Response {
    drain_and_respond_within(DRAIN_TIMEOUT, request, next).await
}

async fn drain_and_respond_within(patience: Duration, request: Request, next: Next) -> Response {
    let waits = request.headers().contains_key(EXPECT);
    let back = UnreadBody::default();
    let lent = |body| {
        Body::new(TrackedBody { body: Some(body), was_polled: false, has_ended: false, unread: Arc::clone(&back) })
    };
    let mut response = next.run(request.map(lent)).await;
    let returned = back.lock().unwrap_or_else(PoisonError::into_inner).take();
    // If the body was not returned to `UnreadBody`, the handler is still reading it.
    let Some((body, was_asked)) = returned else { return response };
    // Polling a body that the client holds back (`Expect: 100-continue`) would make the client send
    // it.
    let is_read = (was_asked || !waits) && timeout(patience, drain(body)).await == Ok(true);
    if !is_read {
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
    response
}

/// Reads and discards the rest of a body. Returns `false` if it exceeds the limit.
async fn drain(mut body: Body) -> bool {
    let mut left = MAX_DRAINED_BYTES;
    while body.size_hint().lower() <= left {
        let Some(frame) = body.frame().await else { return true };
        let length = frame.map(|frame| frame.data_ref().map_or(0, |data| data.len() as u64));
        let Some(rest) = length.ok().and_then(|length| left.checked_sub(length)) else { return false };
        left = rest;
    }
    false
}

/// A body that was not read to its end, and whether the handler polled it.
type UnreadBody = Arc<Mutex<Option<(Body, bool)>>>;

/// The body of a request, which is returned to [`UnreadBody`] if it is dropped before its end.
struct TrackedBody {
    body: Option<Body>,
    was_polled: bool,
    has_ended: bool,
    unread: UnreadBody,
}

impl http_body::Body for TrackedBody {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        self.was_polled = true;
        let Some(body) = &mut self.body else { return Poll::Ready(None) };
        let polled = Pin::new(body).poll_frame(context);
        self.has_ended = matches!(polled, Poll::Ready(None));
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.has_ended || self.body.as_ref().is_none_or(Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.body.as_ref().map(Body::size_hint).unwrap_or_default()
    }
}

impl Drop for TrackedBody {
    fn drop(&mut self) {
        if self.is_end_stream() {
            return;
        }
        let was_asked = self.was_polled;
        *self.unread.lock().unwrap_or_else(PoisonError::into_inner) = self.body.take().map(|body| (body, was_asked));
    }
}

#[cfg(test)]
mod tests {
    use axum::Router;
    use axum::middleware::from_fn;
    use axum::routing::any;
    use futures::{StreamExt, stream};
    use tower::ServiceExt;

    use super::*;

    /// Returns whether the response to a request announces the end of the connection if the handler
    /// does not read the body.
    async fn ends(body: Body, expect: bool) -> bool {
        let brief = from_fn(|request, next| drain_and_respond_within(Duration::from_millis(200), request, next));
        let app = Router::new().fallback(any(|| async {})).layer(brief);
        let request = Request::builder().uri("/");
        let request = if expect { request.header(EXPECT, "100-continue") } else { request };
        let response = app.oneshot(request.body(body).unwrap()).await.unwrap();
        response.headers().get(CONNECTION).is_some_and(|connection| connection == "close")
    }

    fn chunks(count: usize) -> Body {
        let chunk = || Ok::<_, std::io::Error>(Bytes::from(vec![0; 1 << 10]));
        Body::from_stream(stream::iter(std::iter::repeat_with(chunk).take(count)))
    }

    #[tokio::test]
    async fn a_body_that_nobody_wants_is_read_if_it_is_short_and_else_ends_the_connection() {
        for (body, expected) in [
            (Body::empty(), false),
            (Body::from(vec![0; 70 << 10]), false),
            (chunks(70), false),
            (Body::from(vec![0; 2 << 20]), true),
            (chunks(2 << 10), true),
        ] {
            assert_eq!(ends(body, false).await, expected);
        }
        assert!(ends(Body::from("not sent yet"), true).await);
    }

    #[tokio::test]
    async fn a_body_that_does_not_come_is_not_waited_for() {
        let first = stream::iter([Ok::<_, std::io::Error>(Bytes::from_static(b"x"))]);
        assert!(ends(Body::from_stream(first.chain(stream::pending())), false).await);
    }

    #[tokio::test]
    async fn a_body_is_handed_on_as_it_was() {
        let handler = any(|request: Request| async move {
            let length = request.body().size_hint().exact();
            let body = request.into_body().collect().await.unwrap().to_bytes();
            format!("{length:?} {}", body.len())
        });
        let app = Router::new().fallback(handler).layer(from_fn(drain_and_respond));
        for (body, expected) in [(Body::from("four"), "Some(4) 4"), (chunks(3), "None 3072")] {
            let response = app.clone().oneshot(Request::new(body)).await.unwrap();
            assert!(!response.headers().contains_key(CONNECTION));
            assert_eq!(&response.into_body().collect().await.unwrap().to_bytes()[..], expected.as_bytes());
        }
    }
}
