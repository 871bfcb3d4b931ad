//! The traces function as a Lambda.

#[tokio::main]
async fn main() -> Result<(), domain::lambda::Error> {
    domain::lambda::run(&[&traces::DOMAIN], &[]).await
}
