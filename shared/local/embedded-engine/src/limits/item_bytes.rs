//! The size of items, as DynamoDB computes it
//! (<https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/CapacityUnitCalculations.html>).

use serde_json::Value;

/// Returns the size of an item in bytes: names and values of its attributes. The item is given as
/// DynamoDB's JSON.
pub(super) fn of_item(item: &Value) -> usize {
    of_attributes(item, |_| true)
}

/// Returns the size of some attributes of an item in bytes.
pub(super) fn of_attributes(item: &Value, is_one: impl Fn(&str) -> bool) -> usize {
    let attributes = item.as_object().into_iter().flatten().filter(|(name, _)| is_one(name));
    attributes.map(|(name, value)| name.len() + of_value(value)).sum()
}

/// Returns the write units of an item: one per KB, and at least one.
pub(super) fn write_units(bytes: usize) -> f64 {
    f64::from(u32::try_from(bytes.div_ceil(1_024).max(1)).unwrap_or(u32::MAX))
}

fn of_value(value: &Value) -> usize {
    let Some((kind, value)) = value.as_object().and_then(|value| value.iter().next()) else { return 0 };
    let text = |value: &Value| value.as_str().map_or(0, str::len);
    let all = |of: &dyn Fn(&Value) -> usize| value.as_array().into_iter().flatten().map(of).sum();
    match kind.as_str() {
        "S" => text(value),
        "B" => of_base64(value),
        "N" => of_number(value),
        "SS" => all(&text),
        "BS" => all(&of_base64),
        "NS" => all(&of_number),
        "L" => 3 + all(&|element| 1 + of_value(element)),
        "M" => {
            3 + value
                .as_object()
                .into_iter()
                .flatten()
                .map(|(name, value)| 1 + name.len() + of_value(value))
                .sum::<usize>()
        }
        // A boolean or null.
        _ => 1,
    }
}

fn of_base64(value: &Value) -> usize {
    let text = value.as_str().unwrap_or_default();
    text.len() / 4 * 3 - text.bytes().rev().take_while(|byte| *byte == b'=').count()
}

/// Returns the approximate size of a number: one byte for every two significant digits, plus one.
fn of_number(value: &Value) -> usize {
    let digits = value.as_str().unwrap_or_default().bytes().filter(u8::is_ascii_digit).count();
    digits.div_ceil(2) + 1
}
