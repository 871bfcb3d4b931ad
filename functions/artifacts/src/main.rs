//! The artifacts function as a Lambda.

// See `domain::lambda` for why the function uses this allocator, and a single thread.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), domain::lambda::Error> {
    domain::lambda::run(&[&artifacts::DOMAIN], &[]).await
}
