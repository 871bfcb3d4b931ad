//! Names that the server generates.

use rand::RngExt;
use rand::seq::IndexedRandom;

/// The name of the experiment that every new table starts with.
pub(super) const DEFAULT_EXPERIMENT_NAME: &str = "Default";

const ADJECTIVES: &[&str] = &[
    "able", "agile", "amber", "bold", "brave", "bright", "brisk", "calm", "candid", "clear", "clever", "cosmic",
    "crisp", "curious", "daring", "deft", "eager", "early", "fair", "fearless", "fleet", "fresh", "gentle", "golden",
    "grand", "happy", "honest", "humble", "jolly", "keen", "kind", "lively", "loyal", "lucid", "lucky", "mellow",
    "merry", "mighty", "modest", "nimble", "noble", "patient", "placid", "polite", "proud", "quick", "quiet", "rapid",
    "rare", "serene", "sharp", "silent", "sincere", "smooth", "solid", "steady", "subtle", "sunny", "swift", "tidy",
    "upbeat", "vivid", "warm", "wise", "witty",
];
const NOUNS: &[&str] = &[
    "ant", "badger", "bat", "bear", "beaver", "bee", "bison", "cod", "colt", "crab", "crane", "crow", "deer", "dove",
    "duck", "eagle", "elk", "falcon", "fawn", "finch", "fish", "fox", "frog", "goat", "goose", "grouse", "gull",
    "hare", "hawk", "hen", "heron", "horse", "ibis", "jay", "kite", "koi", "lamb", "lark", "lion", "loon", "lynx",
    "mare", "mink", "mole", "moose", "moth", "mouse", "mule", "newt", "otter", "owl", "panda", "perch", "pike",
    "quail", "ram", "raven", "robin", "seal", "shrew", "skunk", "smelt", "snail", "sparrow", "squid", "stag", "stork",
    "swan", "tern", "toad", "trout", "vole", "wasp", "whale", "wolf", "worm", "wren", "yak", "zebra",
];

/// Generates a readable name for a run or a logged model that was created without one: adjective,
/// noun and number, at most 20 characters, like MLflow's.
pub(super) fn random_run_name() -> String {
    let mut rng = rand::rng();
    let adjective = ADJECTIVES.choose(&mut rng).unwrap_or(&"calm");
    let noun = NOUNS.choose(&mut rng).unwrap_or(&"owl");
    format!("{adjective}-{noun}-{}", rng.random_range(0..1_000))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_short() {
        let longest = |words: &[&str]| words.iter().map(|word| word.len()).max().unwrap();
        assert!(longest(ADJECTIVES) + longest(NOUNS) + "--999".len() <= 20);
        assert_eq!(random_run_name().split('-').count(), 3);
    }
}
