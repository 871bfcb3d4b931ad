//! The traces function as a Lambda.

#[tokio::main]
async fn main() -> Result<(), lambda_http::Error> {
    tracing_subscriber::fmt().json().with_max_level(tracing::Level::INFO).without_time().init();
    let store = traces::lambda::store_from_environment().await?;
    lambda_http::run(service::within_lambda(traces::router(&store))).await
}
