//! The auth function as a Lambda.

#[tokio::main]
async fn main() -> Result<(), domain::lambda::Error> {
    domain::lambda::run(&[&auth::DOMAIN], &[]).await
}
