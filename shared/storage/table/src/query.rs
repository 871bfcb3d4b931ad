//! Queries: ranges of one partition, in the sort order of the table or of an index.

use std::collections::HashMap;

use aws_sdk_dynamodb::types::Select;
use key_schema::definition::Index;
use key_schema::{KeyRange, SortKeys};

use crate::expression::Expressions;
use crate::meter::CapacityKind;
use crate::{Item, Result, Table, Value, text};

/// A query for a range of one partition.
#[derive(Clone, Debug)]
pub struct Query {
    range: KeyRange,
    backwards: bool,
    whole: bool,
    for_removal: bool,
    limit: Option<usize>,
    start: Option<HashMap<String, Value>>,
}

/// One page of a query.
#[derive(Clone, Debug)]
pub struct QueryPage {
    /// Items of the page.
    pub items: Vec<Item>,
    /// Start of the next page. `None` on the last page.
    pub next: Option<HashMap<String, Value>>,
}

impl Query {
    /// Returns a query for the items of a range, in ascending order of their sort keys.
    #[must_use]
    pub fn of(range: impl Into<KeyRange>) -> Self {
        Self { range: range.into(), backwards: false, whole: false, for_removal: false, limit: None, start: None }
    }

    /// Makes a query of a local index return items with all their attributes, which the index does
    /// not project. Costs one more read unit per 4 KB of each item.
    #[must_use]
    pub fn whole(mut self) -> Self {
        self.whole = true;
        self
    }

    /// Returns items without checking that they are readable, so that the caller can delete or skip
    /// unreadable ones.
    #[must_use]
    pub fn for_removal(mut self) -> Self {
        self.for_removal = true;
        self
    }

    /// Reverses the order, so that the query starts at the end of the range.
    #[must_use]
    pub fn backwards(mut self) -> Self {
        self.backwards = true;
        self
    }

    /// Limits the page size to this number of items.
    #[must_use]
    pub fn limit(mut self, items: usize) -> Self {
        self.limit = Some(items);
        self
    }

    /// Starts where an earlier page ended.
    #[must_use]
    pub fn starting_at(mut self, start: HashMap<String, Value>) -> Self {
        self.start = Some(start);
        self
    }
}

impl Table {
    /// Reads one page, which ends at 1 MB or at the query's limit. Sends one request, which costs a
    /// read unit per 4 KB of the items in the page.
    pub async fn query_page(&self, query: &Query) -> Result<QueryPage> {
        let mut expressions = Expressions::default();
        let (attribute, partition) = query.range.partition();
        let partition = format!("{}={}", expressions.path(&attribute.into()), expressions.value(&text(partition)));
        let sort = query.range.sort_attribute().into();
        let condition = match query.range.sort_keys() {
            SortKeys::All => partition,
            SortKeys::BeginWith(beginning) => {
                let (sort, beginning) = (expressions.path(&sort), expressions.value(&text(beginning)));
                format!("{partition} AND begins_with({sort},{beginning})")
            }
            SortKeys::Between(first, last) => {
                let sort = expressions.path(&sort);
                let (first, last) = (expressions.value(&text(first)), expressions.value(&text(last)));
                format!("{partition} AND {sort} BETWEEN {first} AND {last}")
            }
        };
        let index = query.range.index();
        let answer = self
            .retry
            .run(|| {
                self.count("Query");
                self.client
                    .query()
                    .table_name(&self.name)
                    .set_index_name(index.map(|index| index.name.to_owned()))
                    .key_condition_expression(&condition)
                    .set_expression_attribute_names(expressions.names())
                    .set_expression_attribute_values(expressions.values())
                    .consistent_read(!index.is_some_and(Index::is_global))
                    .scan_index_forward(!query.backwards)
                    .set_select(query.whole.then_some(Select::AllAttributes))
                    .set_limit(query.limit.map(|limit| i32::try_from(limit).unwrap_or(i32::MAX)))
                    .set_exclusive_start_key(query.start.clone())
                    .set_return_consumed_capacity(self.wanted())
                    .send()
            })
            .await?;
        self.consumed(CapacityKind::Read, answer.consumed_capacity.as_slice());
        let items: Vec<_> = answer.items.unwrap_or_default().into_iter().map(Item).collect();
        // Items of a query that reads only an index have nothing but keys, so there is nothing to
        // check.
        if (index.is_none() || query.whole) && !query.for_removal {
            self.take(&items)?;
        } else {
            self.count_items(&items);
        }
        Ok(QueryPage { items, next: answer.last_evaluated_key.filter(|key| !key.is_empty()) })
    }

    /// Reads the whole range, page by page.
    pub async fn query(&self, query: Query) -> Result<Vec<Item>> {
        let mut query = query;
        let mut items = Vec::new();
        loop {
            let page = self.query_page(&query).await?;
            items.extend(page.items);
            match page.next {
                Some(next) => query = query.starting_at(next),
                None => return Ok(items),
            }
        }
    }
}
