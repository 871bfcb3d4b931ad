//! Generates thousands of models that differ only in their numbers, times and ids. The first few
//! are created by calls, and the items of all others are extrapolated from their items. Tests of
//! searches would otherwise have to create each model by a call.

use std::time::Duration;

use embedded_engine::Engine;
use registry::store::Store;
use runtime::clock::SimulatedClock;
use serde_json::{Value, json};
use test_site::ledger::MeteredProcesses;

use super::{TABLE, bench_on};

/// Number of models that are created by calls. The third one is used to check the extrapolation
/// from the first two.
const EXAMPLES: u32 = 3;
/// Maximum number of items in a batch, as in DynamoDB.
const BATCH: usize = 25;

/// Writes `count` models to an engine's table. Each model is changed in another millisecond,
/// because searches by time read all models that were changed in one millisecond together. The
/// models that are created by calls are created in an otherwise empty table.
pub(super) async fn fill(engine: &Engine, count: u32, make: impl AsyncFn(&Store, u32)) {
    let (mut known, mut examples) = (Vec::new(), Vec::new());
    let aside = Engine::memory().unwrap();
    let MeteredProcesses { store, .. } = bench_on(&aside).await;
    let clock = SimulatedClock::begin();
    let all = async {
        for number in 0..EXAMPLES {
            runtime::clock::sleep(Duration::from_millis(1)).await;
            make(&store, number).await;
            let mut new = aside.items(TABLE).await.unwrap();
            new.retain(|item| !known.contains(item));
            known.extend(new.clone());
            new.sort_by_key(|item| [&item["PK"], &item["SK"]].map(ToString::to_string));
            examples.push(new);
        }
    };
    tokio::select! { () = all => {}, () = clock.drive() => {} }
    let [first, second, third] = &examples[..] else { unreachable!() };
    let nth = |number: u32| first.iter().zip(second).map(move |(first, second)| continued(first, second, number));
    assert_eq!([second.len(), third.len()], [first.len(); 2]);
    for (nth, third) in nth(2).zip(third) {
        joined(&nth, third, &|nth, third| {
            assert!(nth == third || is_drawn(nth) && is_drawn(third), "{third} does not continue the first two");
            String::new()
        });
    }
    let mut items = (0..count).flat_map(nth).peekable();
    while items.peek().is_some() {
        let writes: Vec<_> = items.by_ref().take(BATCH).map(|item| json!({ "PutRequest": { "Item": item } })).collect();
        let answer = engine.call("BatchWriteItem", json!({ "RequestItems": { TABLE: writes } })).await.unwrap();
        assert_eq!(answer["UnprocessedItems"], json!({}));
    }
}

/// Extrapolates the value at position `number` of a series from the first two values. Numbers
/// continue in equal steps, and random values are generated again.
fn continued(first: &Value, second: &Value, number: u32) -> Value {
    assert_ne!([&first["PK"], &first["SK"]], [&second["PK"], &second["SK"]], "each model has its own items");
    joined(first, second, &|first, second| {
        if first == second {
            return first.to_owned();
        }
        // Numbers with 16 digits are times in keys, which are hexadecimal.
        let (radix, width) = (if first.len() == 16 { 16 } else { 10 }, first.len());
        if let [Ok(begin), Ok(next)] = [first, second].map(|word| i64::from_str_radix(word, radix)) {
            let nth = begin + (next - begin) * i64::from(number);
            return if radix == 16 { format!("{nth:0width$x}") } else { format!("{nth:0width$}") };
        }
        assert!(is_drawn(first) && is_drawn(second), "{first} and {second}");
        format!("{}{number:06}", &first[..first.len() - 6])
    })
}

/// Checks whether a word is a random ULID, which is generated again instead of being extrapolated.
fn is_drawn(word: &str) -> bool {
    word.len() == 26 && word.parse::<u128>().is_err()
}

/// Combines two values with the same structure by joining their words in pairs.
fn joined(first: &Value, second: &Value, join: &impl Fn(&str, &str) -> String) -> Value {
    match (first, second) {
        (Value::Object(first), Value::Object(second)) => {
            assert!(first.len() == second.len());
            let joined = first.iter().map(|(name, value)| {
                // Bytes are nonces, which may be equal for several models.
                let both = if name == "B" { value.clone() } else { joined(value, &second[name], join) };
                (name.clone(), both)
            });
            joined.collect()
        }
        (Value::Array(first), Value::Array(second)) => {
            assert!(first.len() == second.len());
            first.iter().zip(second).map(|(first, second)| joined(first, second, join)).collect()
        }
        (Value::String(first), Value::String(second)) => {
            let (first, second) = (words(first), words(second));
            assert!(first.len() == second.len(), "{first:?} and {second:?}");
            first.into_iter().zip(second).map(|(first, second)| join(first, second)).collect::<String>().into()
        }
        _ => {
            assert_eq!(first, second);
            first.clone()
        }
    }
}

/// Splits a text into runs of letters and digits, and the characters between them.
fn words(text: &str) -> Vec<&str> {
    let is_end = |character: char| !character.is_ascii_alphanumeric();
    text.split_inclusive(is_end)
        .flat_map(|part| [part.trim_end_matches(is_end), &part[part.trim_end_matches(is_end).len()..]])
        .collect()
}
