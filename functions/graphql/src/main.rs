//! The GraphQL function as a Lambda.

#[tokio::main]
async fn main() -> Result<(), domain::lambda::Error> {
    // The domains whose endpoints answer the roots of the schema.
    domain::lambda::run(&[&graphql::DOMAIN], &[&tracking::DOMAIN, &registry::DOMAIN, &artifacts::DOMAIN]).await
}
