//! Creates tables, for laptops and tests. In AWS, `template.yaml` creates tables with the same
//! layout.

use aws_sdk_dynamodb::error::ProvideErrorMetadata;
use aws_sdk_dynamodb::types::{
    AttributeDefinition, BillingMode, GlobalSecondaryIndex, KeySchemaElement, KeyType, LocalSecondaryIndex, Projection,
    ProjectionType, ScalarAttributeType, StreamSpecification, StreamViewType, TimeToLiveSpecification,
};
use key_schema::definition::{ACCESS, DATA, PK, SK, TTL, TableDefinition};
use key_schema::rows;

use crate::table::attributes;
use crate::{Failure, Result, Table};

impl Table {
    /// Checks whether the table exists and can be read. A table that DynamoDB is still creating
    /// counts as missing.
    ///
    /// Reads one item, which may be missing, for half a read unit. `DescribeTable` would be slower,
    /// because the embedded engine counts all items to answer it. With many runs, this takes
    /// seconds.
    ///
    /// # Errors
    /// The request fails.
    pub async fn is_there(&self) -> Result<bool> {
        let layout = rows::Config::key(&"layout".into());
        let found = self.retry.run(|| async {
            match self.client.get_item().table_name(&self.name).set_key(Some(attributes(&layout))).send().await {
                Ok(_) => Ok(true),
                Err(error) if error.code() == Some("ResourceNotFoundException") => Ok(false),
                Err(error) => Err(error),
            }
        });
        // Boxed, because tests create tables deep inside other futures, and rustc rejects types
        // that are nested too deeply.
        Box::pin(found).await
    }

    /// Creates the data table if it is missing.
    pub async fn create_if_missing(&self) -> Result<()> {
        self.create_as(&DATA).await
    }

    /// Creates the access table, which holds users and roles, if it is missing.
    pub async fn create_access_if_missing(&self) -> Result<()> {
        self.create_as(&ACCESS).await
    }

    async fn create_as(&self, definition: &TableDefinition) -> Result<()> {
        if self.is_there().await? {
            return Ok(());
        }
        let build = |error: aws_sdk_dynamodb::error::BuildError| Failure::Unexpected(error.to_string());
        let mut request = self
            .client
            .create_table()
            .table_name(&self.name)
            .billing_mode(BillingMode::PayPerRequest)
            .set_key_schema(Some(keys(PK, SK).map_err(build)?));
        for attribute in definition.key_attributes() {
            let definition =
                AttributeDefinition::builder().attribute_name(attribute).attribute_type(ScalarAttributeType::S);
            request = request.attribute_definitions(definition.build().map_err(build)?);
        }
        let keys_only = || Projection::builder().projection_type(ProjectionType::KeysOnly).build();
        for index in definition.local_indexes {
            let schema = keys(index.partition, index.sort).map_err(build)?;
            let index = LocalSecondaryIndex::builder().index_name(index.name).set_key_schema(Some(schema));
            request = request.local_secondary_indexes(index.projection(keys_only()).build().map_err(build)?);
        }
        for index in definition.global_indexes {
            let schema = keys(index.partition, index.sort).map_err(build)?;
            let index = GlobalSecondaryIndex::builder().index_name(index.name).set_key_schema(Some(schema));
            request = request.global_secondary_indexes(index.projection(keys_only()).build().map_err(build)?);
        }
        if definition.has_stream {
            let stream =
                StreamSpecification::builder().stream_enabled(true).stream_view_type(StreamViewType::NewAndOldImages);
            request = request.stream_specification(stream.build().map_err(build)?);
        }
        match request.send().await {
            Ok(_) => {}
            // A concurrent process created it first.
            Err(error) if error.code() == Some("ResourceInUseException") => return Ok(()),
            Err(error) => return Err(Failure::Unexpected(format!("{error:?}"))),
        }
        self.wait_until_active().await?;
        let ttl = TimeToLiveSpecification::builder().attribute_name(TTL).enabled(true).build().map_err(build)?;
        let outcome =
            self.client.update_time_to_live().table_name(&self.name).time_to_live_specification(ttl).send().await;
        outcome.map(|_| ()).map_err(|error| Failure::Unexpected(format!("{error:?}")))
    }

    /// Polls until the table is active. DynamoDB takes some seconds to create a table; the embedded
    /// engine creates it immediately.
    async fn wait_until_active(&self) -> Result<()> {
        for attempt in 0..60 {
            let description = self.retry.run(|| self.client.describe_table().table_name(&self.name).send()).await?;
            let status = description.table.and_then(|table| table.table_status);
            if status == Some(aws_sdk_dynamodb::types::TableStatus::Active) {
                return Ok(());
            }
            self.retry.pause(attempt + 1).await;
        }
        Err(Failure::Unavailable("the table did not become active".to_owned()))
    }
}

fn keys(
    partition: &str,
    sort: &str,
) -> std::result::Result<Vec<KeySchemaElement>, aws_sdk_dynamodb::error::BuildError> {
    let element = |name: &str, kind| KeySchemaElement::builder().attribute_name(name).key_type(kind).build();
    Ok(vec![element(partition, KeyType::Hash)?, element(sort, KeyType::Range)?])
}
