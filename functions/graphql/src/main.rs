//! The GraphQL function as a Lambda.

// Why it has this, and one thread: `domain::lambda`.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), domain::lambda::Error> {
    // The domains whose endpoints answer the roots of the schema.
    domain::lambda::run(&[&graphql::DOMAIN], &[&tracking::DOMAIN, &registry::DOMAIN, &artifacts::DOMAIN]).await
}
