//! Transactions, which may concern several partitions.

use std::collections::BTreeMap;

use aws_smithy_runtime_api::client::result::ConnectorError;
use serde_json::Value;

use super::collections::SIZES;
use super::in_flight::Held;
use super::limited::{Limited, read};
use super::refusal::Reason;
use super::throughput::Direction;
use super::touch::{self, Named};
use super::{consumed, refusal, size};
use crate::wire::Answer;

impl Limited {
    pub(super) async fn transaction(&self, operation: &str, mut body: Value) -> Result<Answer, ConnectorError> {
        let direction = Direction::of(operation);
        let parts = body["TransactItems"].as_array().cloned().unwrap_or_default();
        let mut named = Vec::new();
        for part in &parts {
            let (table, item) = touch::of_transaction(part);
            named.push(Named::of(table, item, &self.schema(table).await?.keys));
        }
        if let Some(refused) = self.throttled(&named, direction) {
            return Ok(refused);
        }
        let held = match self.hold(&named, direction) {
            Ok(held) => held,
            Err(refused) => return Ok(refused),
        };
        if direction == Direction::Write {
            if let Some(refused) = self.too_large(operation, &body, &named, &parts).await? {
                return Ok(refused);
            }
            if let Some(refused) = self.outgrown(operation, &body, &named).await? {
                return Ok(refused);
            }
        }
        let is_wanted = consumed::ask(&mut body);
        let mut answer = self.run(operation, &body).await?;
        if direction == Direction::Write {
            self.last(held).await;
        }
        let mut read = read(&answer)?;
        if answer.status == 200 {
            self.charge_parts(&parts, &named, direction, consumed::units(&read, direction)).await?;
            if !is_wanted {
                consumed::drop(&mut read);
            }
            if direction == Direction::Write
                && let Some(reports) = self.size_reports(&body, &named).await?
            {
                read[SIZES] = reports;
            }
            answer.body = read.to_string();
        } else if read["CancellationReasons"].is_array() {
            // A lower bound, because the size of the items that would have been written is unknown.
            for one in &named {
                self.charge(&one.partition, direction, 2.0);
            }
        }
        Ok(answer)
    }

    /// Returns the error if one of the partitions has no units left. Each partition is checked
    /// once.
    fn throttled(&self, named: &[Named], direction: Direction) -> Option<Answer> {
        let mut admitted = BTreeMap::new();
        for Named { partition, .. } in named {
            admitted.entry(partition).or_insert_with(|| self.admits(partition, direction));
        }
        let throttled: Vec<_> = named.iter().map(|one| !admitted[&one.partition]).collect();
        cancelled(&throttled, Reason::Throttled)
    }

    /// Holds the items of a transaction until it is answered, or returns the error if other
    /// requests hold any of them. A transaction that reads holds no items.
    fn hold(&self, named: &[Named], direction: Direction) -> Result<Option<Held>, Answer> {
        let items: Vec<_> = named.iter().map(Named::item_key).collect();
        let (held, of_others) = match direction {
            Direction::Read => (None, self.in_flight.of_reader(&items)),
            Direction::Write => match self.in_flight.transaction(items) {
                Ok(held) => (Some(held), Vec::new()),
                Err(of_others) => (None, of_others),
            },
        };
        cancelled(&of_others, Reason::Conflict).map_or(Ok(held), Err)
    }

    /// Charges the units that a transaction has consumed. The engine reports their sum. If the
    /// transaction concerns several partitions, the units, including those of indexes, are divided
    /// in proportion to the sizes of their items.
    async fn charge_parts(
        &self,
        parts: &[Value],
        named: &[Named],
        direction: Direction,
        units: f64,
    ) -> Result<(), ConnectorError> {
        let Some(first) = named.first() else { return Ok(()) };
        if named.iter().all(|one| one.partition == first.partition) {
            self.charge(&first.partition, direction, units);
            return Ok(());
        }
        let mut weights = Vec::new();
        for (part, one) in parts.iter().zip(named) {
            // The item in its current state, unless the part contains the whole item.
            let put = &part["Put"]["Item"];
            let item = if put.is_object() { put.clone() } else { self.item(&one.table, &one.key).await? };
            weights.push(size::write_units(size::of_item(&item)));
        }
        let sum: f64 = weights.iter().sum();
        for (one, weight) in named.iter().zip(weights) {
            self.charge(&one.partition, direction, units * weight / sum);
        }
        Ok(())
    }
}

/// Returns the error of a transaction if at least one part has this reason. `parts` has a flag for
/// each part.
fn cancelled(parts: &[bool], reason: Reason) -> Option<Answer> {
    let reasons: Vec<_> = parts.iter().map(|has_it| if *has_it { reason } else { Reason::None }).collect();
    reasons.contains(&reason).then(|| refusal::cancelled(&reasons))
}
