//! The cost of tokens, according to the price catalogue that comes with MLflow.
//!
//! MLflow's own server first downloads a newer catalogue from the internet, once a day for each
//! provider. This server does not.

use std::collections::HashMap;
use std::sync::LazyLock;

use mlflow_api::Json;

use crate::translate::keys;

/// The price catalogue. It has one line per model, with its name and five prices in US dollars per
/// million tokens, each of which may be missing. The lines of a provider follow a line
/// `[provider]`. The file is written by `tests/compare/record_prices.py`.
const CATALOGUE: &str = include_str!("prices.tsv");

/// Prices of one token.
#[derive(Clone, Copy, Default)]
struct Price {
    input: Option<f64>,
    output: Option<f64>,
    cache_read: Option<f64>,
    cache_creation: Option<f64>,
    cache_creation_1hr: Option<f64>,
}

struct Catalogue {
    of_provider: HashMap<(&'static str, &'static str), Price>,
    /// Prices for requests without a known provider. They are the prices of the first provider, in
    /// alphabetical order, that has a price for the model.
    of_any: HashMap<&'static str, Price>,
}

/// The parsed catalogue. It is parsed when the first span with tokens arrives, which takes a few
/// milliseconds.
static PRICES: LazyLock<Catalogue> = LazyLock::new(|| read(CATALOGUE));

fn read(text: &'static str) -> Catalogue {
    let mut catalogue = Catalogue { of_provider: HashMap::new(), of_any: HashMap::new() };
    let mut provider = "";
    for line in text.lines() {
        if let Some(name) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
            provider = name;
            continue;
        }
        let mut fields = line.split('\t');
        let name = fields.next().unwrap_or_default();
        let mut next = || fields.next()?.parse::<f64>().ok().map(|price| price / 1_000_000.0);
        let price = Price {
            input: next(),
            output: next(),
            cache_read: next(),
            cache_creation: next(),
            cache_creation_1hr: next(),
        };
        catalogue.of_provider.insert((provider, name), price);
        let takes_money = |price: &Price| price.input.is_some_and(|price| price != 0.0);
        let known = catalogue.of_any.entry(name).or_insert(price);
        if !takes_money(known) && takes_money(&price) {
            *known = price;
        }
    }
    catalogue
}

/// Returns the cost of tokens, as the value of `mlflow.llm.cost`. Returns `None` for a model that
/// is not in the catalogue.
pub(crate) fn cost(model: &Json, usage: &Json, provider: Option<&Json>) -> Option<Json> {
    let Json::Text(model) = model else { return None };
    if model.is_empty() || ["gateway:/", "endpoints:/"].into_iter().any(|prefix| model.starts_with(prefix)) {
        return None;
    }
    let databricks = ["databricks-", "databricks/"].into_iter().any(|prefix| model.starts_with(prefix));
    let provider = match provider.filter(|provider| provider.is_true()) {
        Some(Json::Text(provider)) => Some(provider.to_lowercase()),
        Some(_) => None,
        None => databricks.then(|| "databricks".to_owned()),
    };
    let tokens = Tokens::of(usage)?;
    let price = price(model, provider.as_deref())?;
    let (input, output) = tokens.cost(price);
    let entries = [(keys::INPUT_COST, input), (keys::OUTPUT_COST, output), (keys::TOTAL_COST, input + output)];
    Some(Json::Object(entries.into_iter().map(|(key, cost)| (key.to_owned(), Json::Float(cost))).collect()))
}

fn price(model: &str, provider: Option<&str>) -> Option<Price> {
    let name = model.split_once('/').map_or(model, |(_, name)| name);
    let of_provider = provider.and_then(|provider| PRICES.of_provider.get(&(provider, name)));
    of_provider.or_else(|| PRICES.of_any.get(name)).copied()
}

struct Tokens {
    input: f64,
    output: f64,
    cache_read: f64,
    cache_creation: f64,
    cache_creation_1hr: f64,
}

impl Tokens {
    /// Reads the token counts. Returns `None` if there are no tokens, or one of the counts is not a
    /// number.
    fn of(usage: &Json) -> Option<Self> {
        let usage = usage.object()?;
        let count = |key: &str| match usage.get(key) {
            None => Some(0.0),
            Some(Json::Integer(digits)) => digits.parse().ok(),
            Some(Json::Float(number)) => Some(*number),
            // To Python, a boolean is a number.
            Some(Json::Bool(value)) => Some(f64::from(u8::from(*value))),
            Some(Json::Null) if ![keys::INPUT_TOKENS, keys::OUTPUT_TOKENS].contains(&key) => Some(0.0),
            Some(_) => None,
        };
        let tokens = Self {
            input: count(keys::INPUT_TOKENS)?,
            output: count(keys::OUTPUT_TOKENS)?,
            cache_read: count(keys::CACHE_READ)?,
            cache_creation: count(keys::CACHE_CREATION)?,
            cache_creation_1hr: count(keys::CACHE_CREATION_1HR)?,
        };
        (tokens.input != 0.0 || tokens.output != 0.0).then_some(tokens)
    }

    /// Returns the cost of the model's input and the cost of its output. Cached tokens are part of
    /// the input.
    fn cost(&self, price: Price) -> (f64, f64) {
        let rate = price.input.unwrap_or_default();
        let creation_rate = price.cache_creation.unwrap_or(rate);
        let regular = (self.input - self.cache_read - self.cache_creation).max(0.0);
        let for_an_hour = self.cache_creation_1hr.min(self.cache_creation);
        let for_minutes = self.cache_creation - for_an_hour;
        let mut input = regular * rate;
        if self.cache_read > 0.0 {
            input += self.cache_read * price.cache_read.unwrap_or(rate);
        }
        if for_minutes > 0.0 {
            input += for_minutes * creation_rate;
        }
        if for_an_hour > 0.0 {
            input += for_an_hour * price.cache_creation_1hr.unwrap_or(creation_rate);
        }
        (input, self.output * price.output.unwrap_or_default())
    }
}
