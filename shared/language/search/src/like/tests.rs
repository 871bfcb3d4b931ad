use std::time::Duration;

use proptest::prelude::*;

use super::*;

fn matches(pattern: &str, text: &str) -> bool {
    LikePattern::like(pattern).unwrap().matches(text)
}

fn matches_in_any_case(pattern: &str, text: &str) -> bool {
    LikePattern::ilike(pattern).unwrap().matches(text)
}

#[test]
fn wildcards() {
    for (pattern, text, expected) in [
        ("", "", true),
        ("", "a", false),
        ("%", "", true),
        ("_", "", false),
        ("_", "é", true),
        ("a%", "abc", true),
        ("%c", "abc", true),
        ("%b%", "abc", true),
        ("a_c", "abc", true),
        ("a_c", "ac", false),
        ("%a%b%", "xaxbx", true),
        ("%ab", "aab", true),
        ("a%b", "acbd", false),
        ("a%a", "a", false),
        ("%_é_%", "aéb", true),
        ("%_é_%", "éb", false),
        ("%__%", "a", false),
        ("A", "a", false),
        (r"\%", r"\x", true),
        ("a.c", "abc", false),
    ] {
        assert_eq!(matches(pattern, text), expected, "{text:?} LIKE {pattern:?}");
    }
    assert!(matches_in_any_case("aB%", "Abc"));
    assert!(matches_in_any_case("%B_D%", "abcde"));
    for (pattern, text) in
        [("é", "É"), ("%ÜBUNG%", "eine Übung"), ("οδοσ", "ΟΔΟΣ"), ("οδος", "ΟΔΟΣ"), ("пр_вет%", "ПРИВЕТ!")]
    {
        assert!(matches_in_any_case(pattern, text), "{text:?} ILIKE {pattern:?}");
        assert!(!matches(pattern, text), "{text:?} LIKE {pattern:?}");
    }
    for (pattern, text) in [("e", "É"), ("strasse", "Straße"), ("5 k", "5 \u{212a}")] {
        assert!(!matches_in_any_case(pattern, text), "{text:?} ILIKE {pattern:?}");
    }
}

#[test]
fn a_pattern_longer_than_sqlite_takes_is_refused() {
    let error = LikePattern::like(&"é".repeat(25_001)).unwrap_err();
    assert_eq!(error.message, "A pattern of LIKE or ILIKE has at most 50000 bytes.");
    assert!(matches(&"é".repeat(25_000), &"é".repeat(25_000)));
}

/// A reference implementation with a table of all prefixes of the pattern and the text.
fn by_definition(pattern: &str, text: &str) -> bool {
    let text: Vec<_> = text.chars().collect();
    let mut reached: Vec<bool> = (0..=text.len()).map(|at| at == 0).collect();
    for wanted in pattern.chars() {
        let before = reached.clone();
        for at in 0..=text.len() {
            reached[at] = match wanted {
                '%' => before[at] || (at > 0 && reached[at - 1]),
                _ => at > 0 && before[at - 1] && (wanted == '_' || wanted == text[at - 1]),
            };
        }
    }
    reached[text.len()]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn agrees_with_the_definition(pattern in "[abé_%]{0,8}", text in "[abé]{0,10}") {
        prop_assert_eq!(matches(&pattern, &text), by_definition(&pattern, &text));
    }

    #[test]
    fn agrees_with_the_definition_in_any_case(pattern in "[aAbBÉé_%]{0,8}", text in "[aAbBÉé]{0,10}") {
        let folded = by_definition(&pattern.to_lowercase(), &text.to_lowercase());
        prop_assert_eq!(matches_in_any_case(&pattern, &text), folded);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(crate::dear_cases(2_000)))]

    /// Tests parts of a pattern that have more than one block of 64 characters.
    #[test]
    fn agrees_with_the_definition_on_long_stretches(
        text in "[ab]{150,300}", from in 0_usize..80, length in 60_usize..140, gaps in prop::collection::vec(0_usize..140, 0..40),
        wrong in prop::option::of(0_usize..140),
    ) {
        let mut stretch: Vec<_> = text.chars().skip(from).take(length).collect();
        for gap in gaps.into_iter().filter(|gap| *gap < length.min(70)) {
            stretch[gap] = '_';
        }
        if let Some(place) = wrong.and_then(|place| stretch.get_mut(place)) {
            *place = 'a';
        }
        let pattern = format!("%{}%", stretch.into_iter().collect::<String>());
        prop_assert_eq!(matches(&pattern, &text), by_definition(&pattern, &text), "{}", pattern);
    }
}

/// Returns the processor time of this thread, which excludes the time that other programs use.
fn now() -> Duration {
    Duration::try_from(rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime)).unwrap()
}

/// Returns the shortest duration of several attempts, which is the least affected by noise.
fn fastest(work: impl Fn() -> bool) -> Duration {
    let attempt = || {
        let began = now();
        assert!(!work(), "must not match, because a match ends the search early");
        now().saturating_sub(began)
    };
    (0..7).map(|_| attempt()).min().unwrap_or_default()
}

/// Patterns of a given size that only fail after a long search.
const ADVERSARIES: [fn(usize) -> String; 6] = [
    |size| "%a".repeat(size) + "b%",
    |size| format!("%{}b%", "a".repeat(size)),
    |size| format!("%{}b%", "aab".repeat(size / 3)),
    |size| format!("%b{}%", "a".repeat(size)),
    |size| format!("{}%b", "a".repeat(size)),
    |size| "%ab".repeat(size) + "%",
];

/// Checks that eight times the pattern and the text take about eight times as long. Work
/// proportional to the product of both lengths would take 64 times as long.
#[test]
fn without_gaps_the_work_is_linear() {
    for adversary in ADVERSARIES {
        let time = |size: usize| {
            let (pattern, text) = (LikePattern::like(&adversary(size)).unwrap(), "a".repeat(4 * size));
            fastest(|| pattern.matches(&text))
        };
        let (short, long) = (time(2_000), time(16_000));
        assert!(long < short.max(Duration::from_micros(20)) * 24, "{}: {short:?}, {long:?}", adversary(6));
    }
}

/// Checks that a search for a long part with `_` takes a small fraction of the time of comparing at
/// every position.
#[test]
fn with_gaps_the_work_is_a_small_part_of_the_product() {
    let stretch = "_a".repeat(1_000) + "b";
    let text = "a".repeat(4_000);
    let at_every_place = || {
        let (stretch, text): (Vec<_>, Vec<_>) = (stretch.chars().collect(), text.chars().collect());
        text.windows(stretch.len())
            .any(|window| window.iter().zip(&stretch).all(|(found, wanted)| is_one(*wanted, Some(*found))))
    };
    let pattern = LikePattern::like(&format!("%{stretch}%")).unwrap();
    let (matched, compared) = (fastest(|| pattern.matches(&text)), fastest(at_every_place));
    assert!(matched * 4 < compared, "{matched:?}, {compared:?}");
}
