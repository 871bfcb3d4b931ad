//! The function of the skill registry as a Lambda.

// `domain::lambda` explains the choice of allocator and the single thread.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), domain::lambda::Error> {
    domain::lambda::run(&[&skills::DOMAIN], &[]).await
}
