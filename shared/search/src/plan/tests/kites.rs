//! The planner knows nothing of runs: kites, made up for this test, are planned by the same code.

use std::cmp::{Ordering, Reverse};
use std::fmt;

use proptest::prelude::*;

use crate::filter::TextTest;
use crate::like::Pattern;
use crate::tokens::of_text;
use crate::{
    AccessPath, Ask, Columns, CommonFields, Direction, Head, Heads, List, NumberRange, Options, Plan, SortBy, Sorting,
    TextColumn, TextRange, TimeRange, choose,
};

#[derive(Clone, Debug, PartialEq)]
struct Kites;

/// The texts that kites are indexed by.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Text {
    Shape,
    Maker,
    Note,
}

/// The number that they are.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Weight;

impl Columns for Kites {
    type Text = Text;
    type Number = Weight;

    const ALL: &'static str = "kites";
}

impl TextColumn for Text {
    fn is_listed(&self, _: &CommonFields) -> bool {
        *self != Self::Note
    }

    fn may_be_missing(&self) -> bool {
        *self == Self::Note
    }

    fn text_field(&self, _: &CommonFields) -> Option<String> {
        (*self == Self::Note).then(|| "note".to_owned())
    }

    fn values(&self) -> &'static [&'static str] {
        if *self == Self::Shape { &["box", "delta"] } else { &[] }
    }
}

impl fmt::Display for Text {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Shape => "shape",
            Self::Maker => "maker",
            Self::Note => "note",
        })
    }
}

impl fmt::Display for Weight {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("weight")
    }
}

#[derive(Clone, Debug)]
struct Kite {
    id: usize,
    shape: &'static str,
    maker: &'static str,
    note: Option<&'static str>,
    weight: Option<f64>,
    flown: i64,
}

impl Kite {
    fn text(&self, column: Text) -> Option<&'static str> {
        match column {
            Text::Shape => Some(self.shape),
            Text::Maker => Some(self.maker),
            Text::Note => self.note,
        }
    }

    fn passes(&self, ask: &Ask<'_, Kites>) -> bool {
        match ask {
            Ask::Text { column, test } => {
                self.text(*column).is_some_and(|text| test.is_none_or(|test| test.passes(text)))
            }
            Ask::Number { range, .. } => self.weight.is_some_and(|weight| range.contains(weight)),
            Ask::Time(range) => range.contains(self.flown),
            Ask::Ids(ids) => ids.contains(&self.id.to_string()),
            Ask::Other => self.id.is_multiple_of(2),
        }
    }

    fn stands_in(&self, list: &List<Kites>) -> bool {
        match list {
            List::All => true,
            List::ByText { column, range } => self.text(*column).is_some_and(|text| range.contains(text)),
            List::ByNumber { range, .. } => self.weight.is_some_and(|weight| range.contains(weight)),
            List::NotANumber { .. } => self.weight.is_some_and(f64::is_nan),
            List::ByToken { token, .. } => self.note.is_some_and(|note| of_text(note).contains(token)),
        }
    }
}

fn tests() -> Vec<TextTest> {
    let owned = |text: &str| text.to_owned();
    vec![
        TextTest::Equal(owned("box")),
        TextTest::NotEqual(owned("delta")),
        TextTest::Like(Pattern::like("d%").unwrap()),
        TextTest::ILike(Pattern::ilike("%N BOX%").unwrap()),
        TextTest::In(["box", "torn box"].map(owned).into()),
    ]
}

fn asks(tests: &[TextTest]) -> Vec<Ask<'_, Kites>> {
    let of_texts = tests
        .iter()
        .flat_map(|test| [Text::Shape, Text::Maker, Text::Note].map(|column| Ask::Text { column, test: Some(test) }));
    let heavy = NumberRange { least: Some(1.0), with_nan: false, ..NumberRange::ANY };
    let light = NumberRange { greatest: Some(2.0), with_nan: false, ..NumberRange::ANY };
    let others = [
        Ask::Text { column: Text::Note, test: None },
        Ask::Number { column: Weight, range: heavy },
        Ask::Number { column: Weight, range: light },
        Ask::Time(TimeRange { from: Some(2), until: None }),
        Ask::Ids(["1", "3"].map(str::to_owned).into()),
        Ask::Other,
    ];
    of_texts.chain(others).collect()
}

fn sortings() -> Vec<Sorting<Kites>> {
    let columns = [Text::Shape, Text::Maker, Text::Note].map(SortBy::Text);
    let by = columns.into_iter().chain([SortBy::Time, SortBy::Number(Weight), SortBy::Other]);
    let directions = [Direction::Ascending, Direction::Descending];
    by.flat_map(|by| directions.map(|direction| Sorting { by: by.clone(), direction, ties_are_newest_first: true }))
        .collect()
}

fn kites() -> impl Strategy<Value = Vec<Kite>> {
    let shape = prop::sample::select(vec!["box", "delta"]);
    let maker = prop::sample::select(vec!["", "box", "delta & co", "Box"]);
    let note = prop::option::of(prop::sample::select(vec!["torn box", "a Box kite", "dry", "box"]));
    let weight = prop::option::of(prop::sample::select(vec![f64::NAN, 0.5, 1.5, 3.0]));
    prop::collection::vec((shape, maker, note, weight, 0_i64..5), 0..16).prop_map(|kites| {
        let kite = |(id, (shape, maker, note, weight, flown))| Kite { id, shape, maker, note, weight, flown };
        kites.into_iter().enumerate().map(kite).collect()
    })
}

fn head(kites: &[Kite], started: TimeRange, list: &List<Kites>, limit: usize) -> Head {
    let is_in = |kite: &&Kite| kite.stands_in(list) && (!list.is_newest_first() || started.contains(kite.flown));
    let mut times: Vec<_> = kites.iter().filter(is_in).map(|kite| kite.flown).collect();
    times.sort_unstable_by_key(|time| Reverse(*time));
    let complete = times.len() <= limit;
    times.truncate(limit);
    let time = |time: Option<&i64>| time.copied().filter(|_| list.is_newest_first());
    Head { entries: times.len(), complete, first: time(times.first()), last: time(times.last()) }
}

fn compare(sorting: &Sorting<Kites>, left: &Kite, right: &Kite) -> Ordering {
    let towards = |order: Ordering| if sorting.direction == Direction::Ascending { order } else { order.reverse() };
    match &sorting.by {
        SortBy::Time => towards(left.flown.cmp(&right.flown)),
        SortBy::Text(column) => towards(left.text(*column).cmp(&right.text(*column))),
        SortBy::Number(_) => {
            let (left, right) = (left.weight.unwrap_or(0.0), right.weight.unwrap_or(0.0));
            let by_value = left.partial_cmp(&right).unwrap_or(Ordering::Equal);
            left.is_nan().cmp(&right.is_nan()).then(towards(by_value))
        }
        SortBy::Other => Ordering::Equal,
    }
}

/// The kites in the order of some lists. Each list is in the order of its column.
fn walked(kites: &[Kite], lists: &[List<Kites>], backwards: bool) -> Vec<Kite> {
    let segments = lists.iter().map(|list| {
        let mut segment: Vec<_> = kites.iter().filter(|kite| kite.stands_in(list)).cloned().collect();
        let (by, direction) = match list {
            List::ByNumber { column, .. } => (SortBy::Number(*column), Direction::Descending),
            List::ByText { column, .. } => (SortBy::Text(*column), Direction::Ascending),
            List::All | List::NotANumber { .. } | List::ByToken { .. } => (SortBy::Time, Direction::Descending),
        };
        let stored = Sorting { by, direction, ties_are_newest_first: true };
        segment.sort_by(|left, right| compare(&stored, left, right));
        if backwards {
            segment.reverse();
        }
        segment
    });
    segments.flatten().collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn a_plan_loses_no_kite_and_walks_in_order(
        kites in kites(), chosen in prop::collection::vec(0_usize..21, 0..4), order in 0_usize..12, limit in 1_usize..12,
    ) {
        let (tests, sortings) = (tests(), sortings());
        let all = asks(&tests);
        let asks: Vec<_> = chosen.into_iter().map(|place| all[place].clone()).collect();
        let sorting = &sortings[order];
        let options = Options::of(&asks, sorting, &CommonFields::default());
        let probes = options.probes().into_iter();
        let heads: Heads<_> = probes.map(|list| { let head = head(&kites, options.started, &list, limit); (list, head) }).collect();
        let plan: Plan<_> = choose(&options, &heads, 5);
        for kite in kites.iter().filter(|kite| asks.iter().all(|ask| kite.passes(ask))) {
            prop_assert!(options.lists.iter().chain(&plan.narrow_by).all(|list| kite.stands_in(list)), "{}", plan);
            prop_assert!(plan.started.contains(kite.flown));
            let is_found = match &plan.path {
                AccessPath::Ids(ids) => ids.contains(&kite.id.to_string()),
                AccessPath::Whole => true,
                AccessPath::Newest { lists } | AccessPath::Gather { lists } => lists.iter().all(|list| kite.stands_in(list)),
                AccessPath::Walk(walk) => walk.missing_follow || walk.segments.iter().any(|list| kite.stands_in(list)),
            };
            prop_assert!(is_found, "{}", plan);
        }
        if let Some(walk) = &options.walk {
            let walked = walked(&kites, &walk.segments, walk.backwards);
            prop_assert!(walked.is_sorted_by(|left, right| compare(sorting, left, right).is_le()), "{} {:?}", walk, sorting);
        }
    }
}

#[test]
fn plans_of_kites_in_words() {
    let tests = tests();
    let ask = |column, test: usize| Ask::Text { column, test: Some(&tests[test]) };
    let sorting = |by, direction| Sorting { by, direction, ties_are_newest_first: true };
    let newest = sorting(SortBy::Time, Direction::Descending);
    for (asks, sorting, expected) in [
        (vec![], &newest, "newest first\n  about 30 read units in 1 request"),
        (vec![ask(Text::Shape, 0)], &newest, "newest first of shape = 'box'\n  about 102 read units in 2 requests"),
        (vec![ask(Text::Note, 3)], &newest, "newest first of 'n b' in note\n  about 102 read units in 2 requests"),
        (
            vec![],
            &sorting(SortBy::Text(Text::Shape), Direction::Descending),
            "walk shape = 'delta', then shape = 'box'\n  about 102 read units in 2 requests",
        ),
        (
            vec![],
            &sorting(SortBy::Number(Weight), Direction::Ascending),
            "walk weight of any number, then weight NaN, backwards, equal ones sorted, then kites without\n  about 102 read \
             units in 2 requests",
        ),
        (
            vec![],
            &sorting(SortBy::Text(Text::Note), Direction::Ascending),
            "the whole experiment\n  about 3000 read units in 12 requests, if there are 10000 kites",
        ),
    ] {
        let options = Options::of(&asks, sorting, &CommonFields::default());
        let head = |list: List<Kites>| {
            let times = if list.is_newest_first() { (Some(1_000), Some(0)) } else { (None, None) };
            (list, Head { entries: Head::ENTRIES, complete: false, first: times.0, last: times.1 })
        };
        let heads: Heads<_> = options.probes().into_iter().map(head).collect();
        assert_eq!(choose(&options, &heads, 100).to_string(), expected);
    }
    let range = |least| NumberRange { least, greatest: Some(2.0), with_nan: false };
    let contradiction = [Some(3.0), None].map(|least| Ask::Number { column: Weight, range: range(least) });
    let options = Options::of(&contradiction, &newest, &CommonFields::default());
    assert_eq!(options.ids, Some(Vec::new()));
    assert_eq!(List::<Kites>::ByText { column: Text::Maker, range: TextRange::ANY }.to_string(), "maker of any value");
}
