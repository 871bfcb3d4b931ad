//! The sender of a request according to API Gateway. This information is part of the event, not of
//! headers that a client could forge.

use access::{ConnectionInfo, GatewayIdentity};
use axum::Router;
use axum::extract::Request;
use axum::middleware::map_request;
use lambda_http::request::RequestContext;

/// Wraps a router for a Lambda, so that its requests carry the gateway's facts about the sender.
pub(crate) fn with_connection_info(router: Router) -> Router {
    router.layer(map_request(add_connection_info))
}

async fn add_connection_info(mut request: Request) -> Request {
    let entry = request.extensions().get().map(connection_info).unwrap_or_default();
    request.extensions_mut().insert(entry);
    request
}

/// Returns the facts in the request context of an event.
fn connection_info(context: &RequestContext) -> ConnectionInfo {
    let RequestContext::ApiGatewayV2(context) = context else { return ConnectionInfo::default() };
    let iam = context.authorizer.as_ref().and_then(|authorizer| authorizer.iam.as_ref());
    let gateway = iam.and_then(|iam| {
        // The part after the colon is the name of the role session, which the caller chose.
        let user = iam.user_id.as_deref()?.split(':').next()?.to_owned();
        Some(GatewayIdentity { account: iam.account_id.clone()?, arn: iam.user_arn.clone()?, user })
    });
    let peer = context.http.source_ip.as_deref().and_then(|address| address.parse().ok());
    // The gateway accepts only TLS.
    ConnectionInfo { peer, gateway, is_secure: true }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use axum::body::Body;
    use axum::routing::get;
    use serde_json::{Value, json};
    use tower::ServiceExt;

    use super::*;

    async fn entry(authorizer: Value) -> ConnectionInfo {
        let event = json!({
            "version": "2.0", "routeKey": "$default", "rawPath": "/health", "rawQueryString": "",
            "headers": { "x-amzn-request-context": "forged" }, "isBase64Encoded": false,
            "requestContext": {
                "accountId": "1", "apiId": "a", "domainName": "d", "domainPrefix": "d", "requestId": "r",
                "routeKey": "$default", "stage": "$default", "time": "t", "timeEpoch": 1, "authorizer": authorizer,
                "http": { "method": "GET", "path": "/health", "protocol": "HTTP/1.1", "sourceIp": "192.0.2.7", "userAgent": "u" },
            },
        });
        let request = lambda_http::request::from_str(&event.to_string()).unwrap();
        let found = Arc::<Mutex<Option<ConnectionInfo>>>::default();
        let kept = Arc::clone(&found);
        let keep = move |request: Request| async move {
            *kept.lock().unwrap() = request.extensions().get::<ConnectionInfo>().cloned();
        };
        let app = with_connection_info(Router::new().route("/health", get(keep)));
        app.oneshot(request.map(|_| Body::empty())).await.unwrap();
        let entry = found.lock().unwrap().take();
        entry.unwrap()
    }

    #[tokio::test]
    async fn a_request_carries_what_the_gateway_knows_of_its_sender() {
        let peer = "192.0.2.7".parse().ok();
        let iam = json!({ "iam": {
            "accessKey": "k", "accountId": "123456789012", "callerId": "AROAX:chosen", "principalOrgId": "o",
            "userArn": "arn:aws:sts::123456789012:assumed-role/train/chosen", "userId": "AROAX:chosen",
        } });
        let signed = GatewayIdentity {
            account: "123456789012".to_owned(),
            arn: "arn:aws:sts::123456789012:assumed-role/train/chosen".to_owned(),
            user: "AROAX".to_owned(),
        };
        assert_eq!(entry(iam).await, ConnectionInfo { peer, gateway: Some(signed), is_secure: true });
        assert_eq!(entry(json!({})).await, ConnectionInfo { peer, gateway: None, is_secure: true });
    }
}
