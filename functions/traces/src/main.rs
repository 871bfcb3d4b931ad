//! The traces function as a Lambda.

#[tokio::main]
async fn main() -> Result<(), lambda_http::Error> {
    tracing_subscriber::fmt().json().with_max_level(tracing::Level::INFO).without_time().init();
    let store = traces::lambda::store_from_environment().await?;
    let router = traces::router(&store);
    let router = match store.artifacts().aside() {
        Some(aside) => service::within_lambda_or_aside(router, aside),
        None => service::within_lambda(router),
    };
    lambda_http::run(router).await
}
