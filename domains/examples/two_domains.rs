//! Combines two domains in one Lambda function, without any changes to the crates of these domains.

#[tokio::main]
async fn main() -> Result<(), domain::lambda::Error> {
    domain::lambda::run(&[&evaluation::DOMAIN, &registry::DOMAIN], &[]).await
}
