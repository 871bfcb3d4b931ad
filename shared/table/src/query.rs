//! Queries: a range of one partition, in the order of the table or of an index.

use std::collections::HashMap;

use aws_sdk_dynamodb::types::Select;
use key_schema::definition::{LOCAL_INDEXES, PK, SK};

use crate::expression::Expressions;
use crate::meter::Direction;
use crate::{Item, Result, Table, Value};

/// A range of one partition.
#[derive(Clone, Debug)]
pub struct Query {
    index: Option<&'static str>,
    partition: (&'static str, String),
    sort: &'static str,
    range: Range,
    backwards: bool,
    whole: bool,
    limit: Option<usize>,
    start: Option<HashMap<String, Value>>,
}

#[derive(Clone, Debug)]
enum Range {
    BeginsWith(String),
    Between(String, String),
}

/// One page of a query.
#[derive(Clone, Debug)]
pub struct Page {
    /// Its items.
    pub items: Vec<Item>,
    /// Where the next page starts; `None` on the last.
    pub next: Option<HashMap<String, Value>>,
}

impl Query {
    /// The items of a partition whose sort key begins so.
    #[must_use]
    pub fn begins_with(partition: impl Into<String>, prefix: impl Into<String>) -> Self {
        Self {
            index: None,
            partition: (PK, partition.into()),
            sort: SK,
            range: Range::BeginsWith(prefix.into()),
            backwards: false,
            whole: false,
            limit: None,
            start: None,
        }
    }

    /// The items of a partition whose sort key lies between the two, both included.
    #[must_use]
    pub fn between(partition: impl Into<String>, first: impl Into<String>, last: impl Into<String>) -> Self {
        Self { range: Range::Between(first.into(), last.into()), ..Self::begins_with(partition, "") }
    }

    /// In the order, and by the sort key, of a local index.
    #[must_use]
    pub fn local(mut self, index: &'static str) -> Self {
        self.index = Some(index);
        self.sort = LOCAL_INDEXES.iter().find(|(name, _)| *name == index).map_or(SK, |(_, sort)| sort);
        self
    }

    /// The keys a global index holds for this partition of it. Behind by moments.
    #[must_use]
    pub fn global(index: &'static str, attribute: &'static str, partition: impl Into<String>) -> Self {
        Self { index: Some(index), partition: (attribute, partition.into()), ..Self::begins_with("", "") }
    }

    /// With all attributes of the items, which a local index does not hold: a read unit per 4 KB of each item more.
    #[must_use]
    pub fn whole(mut self) -> Self {
        self.whole = true;
        self
    }

    /// From the end.
    #[must_use]
    pub fn backwards(mut self) -> Self {
        self.backwards = true;
        self
    }

    /// At most this many items a page.
    #[must_use]
    pub fn limit(mut self, items: usize) -> Self {
        self.limit = Some(items);
        self
    }

    /// From where an earlier page ended.
    #[must_use]
    pub fn starting_at(mut self, start: HashMap<String, Value>) -> Self {
        self.start = Some(start);
        self
    }

    fn is_global(&self) -> bool {
        self.partition.0 != PK
    }
}

impl Table {
    /// Reads one page: up to 1 MB, or the limit. One request; a read unit per 4 KB of what lies in the range.
    pub async fn query_page(&self, query: &Query) -> Result<Page> {
        let mut expressions = Expressions::default();
        let (attribute, partition) = &query.partition;
        let partition =
            format!("{}={}", expressions.path(&(*attribute).into()), expressions.value(&Value::S(partition.clone())));
        let condition = match &query.range {
            Range::BeginsWith(prefix) if prefix.is_empty() => partition,
            Range::BeginsWith(prefix) => {
                let (sort, prefix) =
                    (expressions.path(&query.sort.into()), expressions.value(&Value::S(prefix.clone())));
                format!("{partition} AND begins_with({sort},{prefix})")
            }
            Range::Between(first, last) => {
                let sort = expressions.path(&query.sort.into());
                let (first, last) =
                    (expressions.value(&Value::S(first.clone())), expressions.value(&Value::S(last.clone())));
                format!("{partition} AND {sort} BETWEEN {first} AND {last}")
            }
        };
        let answer = self
            .retry
            .run(|| {
                self.count("Query");
                self.client
                    .query()
                    .table_name(&self.name)
                    .set_index_name(query.index.map(str::to_owned))
                    .key_condition_expression(&condition)
                    .set_expression_attribute_names(expressions.names())
                    .set_expression_attribute_values(expressions.values())
                    .consistent_read(!query.is_global())
                    .scan_index_forward(!query.backwards)
                    .set_select(query.whole.then_some(Select::AllAttributes))
                    .set_limit(query.limit.map(|limit| i32::try_from(limit).unwrap_or(i32::MAX)))
                    .set_exclusive_start_key(query.start.clone())
                    .set_return_consumed_capacity(self.wanted())
                    .send()
            })
            .await?;
        self.consumed(Direction::Read, answer.consumed_capacity.as_slice());
        let items = answer.items.unwrap_or_default().into_iter().map(Item).collect();
        Ok(Page { items, next: answer.last_evaluated_key.filter(|key| !key.is_empty()) })
    }

    /// Reads the whole range, page after page.
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
