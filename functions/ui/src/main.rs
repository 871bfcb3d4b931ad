//! The user interface as a Lambda.

#[tokio::main]
async fn main() -> Result<(), domain::lambda::Error> {
    domain::lambda::run(&[&ui::DOMAIN], &[]).await
}
