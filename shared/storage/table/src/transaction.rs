//! Transactions: up to 100 writes, all or nothing, at twice the price.

use aws_sdk_dynamodb::types::{
    ConditionCheck, Delete, Put, ReturnValuesOnConditionCheckFailure as OnRefusal, TransactWriteItem,
    Update as SdkUpdate,
};
use key_schema::Key;

use crate::expression::Expressions;
use crate::meter::CapacityKind;
use crate::table::attributes;
use crate::{Condition, Failure, Item, Result, Table, Update};

/// One write of a transaction.
#[derive(Clone, Debug)]
pub enum Write {
    /// Writes a whole item if the condition holds for the existing one.
    Put(Item, Condition),
    /// Updates an item.
    Update(Update),
    /// Deletes an item if the condition holds for it.
    Delete(Key, Condition),
    /// Checks a condition without writing.
    Check(Key, Condition),
    /// A write to the table with this name in the same account.
    OtherTable(String, Box<Write>),
}

impl Write {
    /// Returns the name of the table that a write is for, and the write without its wrapper
    /// `OtherTable`. `here` is the name of the transaction's own table.
    fn of<'a>(&'a self, here: &'a str) -> (&'a str, &'a Self) {
        match self {
            Self::OtherTable(table, write) => write.of(table),
            write => (here, write),
        }
    }
}

impl Table {
    /// Executes all writes or none. Sends one request, which costs two write units per KB of each
    /// item, including items that are only checked.
    ///
    /// Writes to other tables ([`Table::of_others`]) are part of the same transaction. The
    /// transaction is executed only once even if it is sent twice, because the request carries a
    /// token that DynamoDB remembers for ten minutes.
    ///
    /// # Errors
    /// [`Failure::Cancelled`] with one reason per write if a condition does not hold.
    pub async fn transact(&self, writes: &[Write]) -> Result<()> {
        self.transact_noting(&mut false, writes).await
    }

    /// Returns a write to this table that can be part of a transaction of another table.
    #[must_use]
    pub fn of_others(&self, write: Write) -> Write {
        Write::OtherTable(self.name.clone(), Box::new(write))
    }

    /// Executes all writes or none. Sets `lost` if the response to an attempt was lost.
    pub(crate) async fn transact_noting(&self, lost: &mut bool, writes: &[Write]) -> Result<()> {
        let parts = writes.iter().map(|write| part(write, &self.name)).collect::<std::result::Result<Vec<_>, _>>();
        let parts = parts.map_err(|error| Failure::Unexpected(error.to_string()))?;
        let token = ulid::Ulid::generate().to_string();
        let answer = self
            .retry
            .run_noting(lost, || {
                self.count("TransactWriteItems");
                self.client
                    .transact_write_items()
                    .set_transact_items(Some(parts.clone()))
                    .client_request_token(&token)
                    .set_return_consumed_capacity(self.wanted())
                    .set_return_item_collection_metrics(self.sizes_wanted())
                    .send()
            })
            .await?;
        self.consumed(CapacityKind::Write, answer.consumed_capacity());
        self.look_at_sizes_of(answer.item_collection_metrics());
        Ok(())
    }
}

fn part(write: &Write, here: &str) -> std::result::Result<TransactWriteItem, aws_sdk_dynamodb::error::BuildError> {
    let mut expressions = Expressions::default();
    let part = TransactWriteItem::builder();
    let (table, write) = write.of(here);
    Ok(match write {
        Write::Put(item, condition) => {
            let condition = expressions.condition(condition);
            part.put(
                Put::builder()
                    .table_name(table)
                    .set_item(Some(item.0.clone()))
                    .set_condition_expression(condition)
                    .set_expression_attribute_names(expressions.names())
                    .set_expression_attribute_values(expressions.values())
                    .return_values_on_condition_check_failure(OnRefusal::AllOld)
                    .build()?,
            )
        }
        Write::Update(update) => {
            let change = expressions.update(update);
            let condition = expressions.condition(&update.condition);
            part.update(
                SdkUpdate::builder()
                    .table_name(table)
                    .set_key(Some(attributes(&update.key)))
                    .update_expression(change)
                    .set_condition_expression(condition)
                    .set_expression_attribute_names(expressions.names())
                    .set_expression_attribute_values(expressions.values())
                    .return_values_on_condition_check_failure(OnRefusal::AllOld)
                    .build()?,
            )
        }
        Write::Delete(key, condition) => {
            let condition = expressions.condition(condition);
            part.delete(
                Delete::builder()
                    .table_name(table)
                    .set_key(Some(attributes(key)))
                    .set_condition_expression(condition)
                    .set_expression_attribute_names(expressions.names())
                    .set_expression_attribute_values(expressions.values())
                    .return_values_on_condition_check_failure(OnRefusal::AllOld)
                    .build()?,
            )
        }
        Write::Check(key, condition) => {
            let condition = expressions.condition(condition).unwrap_or_default();
            part.condition_check(
                ConditionCheck::builder()
                    .table_name(table)
                    .set_key(Some(attributes(key)))
                    .condition_expression(condition)
                    .set_expression_attribute_names(expressions.names())
                    .set_expression_attribute_values(expressions.values())
                    .return_values_on_condition_check_failure(OnRefusal::AllOld)
                    .build()?,
            )
        }
        // `Write::of` never returns this variant.
        Write::OtherTable(..) => part,
    }
    .build())
}
