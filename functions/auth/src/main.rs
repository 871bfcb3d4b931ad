//! The auth function as a Lambda.

// Why it has this, and one thread: `domain::lambda`.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), domain::lambda::Error> {
    domain::lambda::run(&[&auth::DOMAIN], &[]).await
}
