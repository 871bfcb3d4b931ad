//! Transactions, which may concern several partitions.

use std::collections::BTreeMap;

use aws_smithy_runtime_api::client::result::ConnectorError;
use serde_json::Value;

use super::collection_size::SIZE_REPORT_FIELD;
use super::error_responses::PartRefusal;
use super::in_flight::HeldItems;
use super::limited_engine::{LimitedEngine, read};
use super::requested_items::{self, RequestedItem};
use super::throughput::CapacityKind;
use super::{consumed_capacity, error_responses, item_bytes};
use crate::aws_json::EngineResponse;

impl LimitedEngine {
    pub(super) async fn transaction(&self, operation: &str, mut body: Value) -> Result<EngineResponse, ConnectorError> {
        let direction = CapacityKind::of(operation);
        let parts = body["TransactItems"].as_array().cloned().unwrap_or_default();
        let mut named = Vec::new();
        for part in &parts {
            let (table, item) = requested_items::of_transaction(part);
            named.push(RequestedItem::of(table, item, &self.schema(table).await?.keys));
        }
        if let Some(refused) = self.throttled(&named, direction) {
            return Ok(refused);
        }
        let held = match self.hold(&named, direction) {
            Ok(held) => held,
            Err(refused) => return Ok(refused),
        };
        if direction == CapacityKind::Write {
            if let Some(refused) = self.too_large(operation, &body, &named, &parts).await? {
                return Ok(refused);
            }
            if let Some(refused) = self.outgrown(operation, &body, &named).await? {
                return Ok(refused);
            }
        }
        let is_wanted = consumed_capacity::ask(&mut body);
        let mut answer = self.run(operation, &body).await?;
        if direction == CapacityKind::Write {
            self.last(held).await;
        }
        let mut read = read(&answer)?;
        if answer.status == 200 {
            self.charge_parts(&parts, &named, direction, consumed_capacity::units(&read, direction)).await?;
            if !is_wanted {
                consumed_capacity::drop(&mut read);
            }
            if direction == CapacityKind::Write
                && let Some(reports) = self.size_reports(&body, &named).await?
            {
                read[SIZE_REPORT_FIELD] = reports;
            }
            answer.body = read.to_string();
        } else if read["CancellationReasons"].is_array() {
            // Two units per item are a lower bound, because the size of the items that would have
            // been written is unknown.
            for one in &named {
                self.charge(&one.partition, direction, 2.0);
            }
        }
        Ok(answer)
    }

    /// Returns the error if one of the partitions has no units left. Each partition is checked
    /// once.
    fn throttled(&self, named: &[RequestedItem], direction: CapacityKind) -> Option<EngineResponse> {
        let mut admitted = BTreeMap::new();
        for RequestedItem { partition, .. } in named {
            admitted.entry(partition).or_insert_with(|| self.admits(partition, direction));
        }
        let throttled: Vec<_> = named.iter().map(|one| !admitted[&one.partition]).collect();
        cancelled(&throttled, PartRefusal::Throttled)
    }

    /// Holds the items of a transaction until it is answered, or returns the error if other
    /// requests hold any of them. A transaction that reads holds no items.
    fn hold(&self, named: &[RequestedItem], direction: CapacityKind) -> Result<Option<HeldItems>, EngineResponse> {
        let items: Vec<_> = named.iter().map(RequestedItem::item_key).collect();
        let (held, of_others) = match direction {
            CapacityKind::Read => (None, self.in_flight.of_reader(&items)),
            CapacityKind::Write => match self.in_flight.transaction(items) {
                Ok(held) => (Some(held), Vec::new()),
                Err(of_others) => (None, of_others),
            },
        };
        cancelled(&of_others, PartRefusal::Conflict).map_or(Ok(held), Err)
    }

    /// Charges the units that a transaction has consumed. The engine reports only their sum. If the
    /// transaction addresses several partitions, the units, including those of indexes, are divided
    /// in proportion to the sizes of the partitions' items.
    async fn charge_parts(
        &self,
        parts: &[Value],
        named: &[RequestedItem],
        direction: CapacityKind,
        units: f64,
    ) -> Result<(), ConnectorError> {
        let Some(first) = named.first() else { return Ok(()) };
        if named.iter().all(|one| one.partition == first.partition) {
            self.charge(&first.partition, direction, units);
            return Ok(());
        }
        let mut weights = Vec::new();
        for (part, one) in parts.iter().zip(named) {
            // Uses the stored item's size, unless the part contains the whole item.
            let put = &part["Put"]["Item"];
            let item = if put.is_object() { put.clone() } else { self.item(&one.table, &one.key).await? };
            weights.push(item_bytes::write_units(item_bytes::of_item(&item)));
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
fn cancelled(parts: &[bool], reason: PartRefusal) -> Option<EngineResponse> {
    let reasons: Vec<_> = parts.iter().map(|has_it| if *has_it { reason } else { PartRefusal::None }).collect();
    reasons.contains(&reason).then(|| error_responses::cancelled(&reasons))
}
