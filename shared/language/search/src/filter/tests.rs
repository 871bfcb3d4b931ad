//! Tests of parsed filters by their printed form.

use proptest::prelude::*;

use super::{parse_experiment_filter, parse_run_filter};

#[test]
fn run_filters() {
    for (text, printed) in [
        ("", ""),
        ("metrics.acc>0.5", "metrics.`acc` > 0.5"),
        ("metric.`val loss` <= -1.5e-3", "metrics.`val loss` <= -0.0015"),
        ("metrics.\"m1.5\" != 1. and metrics.x = .5", "metrics.`m1.5` != 1.0 AND metrics.`x` = 0.5"),
        ("param.lr = \"0.1\" And parameters.`a/b` != 'it''s'", "params.`lr` = '0.1' AND params.`a/b` != \"it''s\""),
        ("tags.`mlflow.source.name` like '%train%'", "tags.`mlflow.source.name` LIKE '%train%'"),
        ("tags.mlflow.user = 'me'", "tags.`mlflow.user` = 'me'"),
        ("tags.order = 'a' AND params.type = 'b'", "tags.`order` = 'a' AND params.`type` = 'b'"),
        ("status\n=\n'FINISHED'\nAND\nstart_time > 10", "status = 'FINISHED' AND start_time > 10"),
        ("attr.created < 1e3 and run.end_time >= -5", "start_time < 1000.0 AND end_time >= -5"),
        ("`run name` ILIKE 'a_'", "tags.`mlflow.runName` ILIKE 'a_'"),
        ("run_id in ('a', \"b\")", "run_id IN ('a', 'b')"),
        ("attributes.run_id NOT IN ('a',)", "run_id NOT IN ('a')"),
        (
            "dataset.name = 'd' and datasets.context IN ('train')",
            "datasets.name = 'd' AND datasets.context IN ('train')",
        ),
        ("params.a is null and tags.b IS NOT NULL", "params.`a` IS NULL AND tags.`b` IS NOT NULL"),
        // MLflow accepts filters with missing or redundant ANDs.
        ("status = 'a' metrics.acc > 1", "status = 'a' AND metrics.`acc` > 1.0"),
        ("AND status = 'a' AND", "status = 'a'"),
    ] {
        let filter = parse_run_filter(text).unwrap();
        assert_eq!(filter.to_string(), printed, "{text}");
        assert_eq!(parse_run_filter(printed).unwrap(), filter, "{printed}");
    }
}

#[test]
fn experiment_filters() {
    for (text, printed) in [
        ("name = 'a' and attribute.name ILIKE '%b'", "name = 'a' AND name ILIKE '%b'"),
        ("experiment_id = '01'", "experiment_id IN ('1')"),
        ("experiment_id NOT IN ('1', '2')", "experiment_id NOT IN ('1', '2')"),
        ("creation_time >= 5 AND last_update_time != 7", "creation_time >= 5 AND last_update_time != 7"),
        ("tags.`a b` != 'c' AND tag.d IS NULL", "tags.`a b` != 'c' AND tags.`d` IS NULL"),
    ] {
        let filter = parse_experiment_filter(text).unwrap();
        assert_eq!(filter.to_string(), printed, "{text}");
        assert_eq!(parse_experiment_filter(printed).unwrap(), filter, "{printed}");
    }
}

proptest! {
    #[test]
    fn no_text_makes_trouble(text in "\\PC*") {
        let _ = parse_run_filter(&text);
        let _ = parse_experiment_filter(&text);
    }

    #[test]
    fn no_row_of_words_makes_trouble(words in prop::collection::vec(prop::sample::select(WORDS), 0..12)) {
        let text = words.concat();
        let _ = parse_run_filter(&text);
        let _ = parse_experiment_filter(&text);
    }
}

const WORDS: &[&str] = &[
    "metrics", ".", "acc", "`a b`", "\"q\"", "'v'", "'", "\"", "`", "=", "!=", " LIKE ", " IN ", " NOT ", " NULL ",
    " IS ", " AND ", "(", ")", ",", "1", "2.5", "-3", "1e5", ";", "--", "-", "*", "/*", "*/", "[", "]", "# ", " ",
    "\n", " DESC ", " WHERE ", " AS ", "date", "::", ":=", "é", "´", "\\", "%s", "$a", "@v", "1x", "name", "run_id",
];
