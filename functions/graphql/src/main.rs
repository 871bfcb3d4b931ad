//! The GraphQL function as a Lambda.

// See `domain::lambda` for why the function uses this allocator, and a single thread.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), domain::lambda::Error> {
    // The domains whose endpoints resolve the schema's root fields.
    domain::lambda::run(&[&graphql::DOMAIN], &[&tracking::DOMAIN, &registry::DOMAIN, &artifacts::DOMAIN]).await
}
