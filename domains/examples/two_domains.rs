//! Two domains in one Lambda, which answers the requests of both. The crates of the domains know
//! nothing of it.

#[tokio::main]
async fn main() -> Result<(), domain::lambda::Error> {
    domain::lambda::run(&[&evaluation::DOMAIN, &registry::DOMAIN], &[]).await
}
