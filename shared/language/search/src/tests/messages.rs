//! Tests of error messages, which were recorded from MLflow 3.17.2.

use mlflow_api::ErrorCode;

use super::owned;
use crate::{parse_experiment_search, parse_run_search};

/// Abbreviations of recurring phrases in the tables of error messages.
const PHRASES: &[(&str, &str)] = &[
    (
        "<run attributes>",
        "{'Created', 'Run Name', 'Run name', 'artifact_uri', 'created', 'end_time', 'run name', 'run_id', 'run_name', \
         'start_time', 'status', 'user_id'}",
    ),
    (
        "<sortable attributes>",
        "{'Created', 'artifact_uri', 'created', 'end_time', 'run_id', 'run_name', 'start_time', 'status', 'user_id'}",
    ),
    ("<experiment attributes>", "{'creation_time', 'experiment_id', 'last_update_time', 'name'}"),
    ("<comparators of texts>", "{'!=', '=', 'ILIKE', 'IN', 'LIKE', 'NOT IN'}"),
    ("<comparators of numbers>", "{'!=', '<', '<=', '=', '>', '>='}"),
    ("<comparators of keys>", "{'!=', '=', 'ILIKE', 'IS NOT NULL', 'IS NULL', 'LIKE'}"),
    ("<entity types>", "['metric', 'parameter', 'tag', 'attribute', 'dataset']"),
    (
        "<ill-formed>",
        "While parsing a list in the query, expected a non-empty list of string values, but got ill-formed list.",
    ),
    ("<unquoted>", "Parameter value is either not quoted or unidentified quote types used for string value"),
    ("<use quotes>", "Use either single or double quotes."),
    ("<invalid>", "Invalid clause(s) in filter string:"),
];

fn in_full(message: &str) -> String {
    PHRASES.iter().fold(message.to_owned(), |message, (short, phrase)| message.replace(short, phrase))
}

const RUN_FILTERS: &[(&str, &str)] = &[
    ("status = 'a' OR status = 'b'", "<invalid> 'OR'"),
    ("(status = 'a')", "<invalid> '(status = 'a')'"),
    ("status = 'a' AND (metrics.acc > 1)", "<invalid> '(metrics.acc > 1)'"),
    ("status = 'a", "<invalid> 'status', '=', ''', 'a'"),
    ("metrics.acc > 1'", "<invalid> '''"),
    ("metrics.acc", "<invalid> 'metrics.acc'"),
    ("metrics.acc >", "<invalid> 'metrics.acc', '>'"),
    ("> 1", "<invalid> '>', '1'"),
    ("1 > metrics.acc", "Invalid comparison clause. Expected 'Identifier' found '1'"),
    ("metrics.acc = metrics.loss", "Expected numeric value type for metric. Found metrics.loss"),
    ("status = FINISHED", "<unquoted> FINISHED. <use quotes>"),
    ("params.lr = 0.1", "Expected a quoted string value for parameter (e.g. 'my-value'). Got value 0.1"),
    ("params.lr = abc", "<unquoted> abc. <use quotes>"),
    ("metrics.acc = '0.1'", "Expected numeric value type for metric. Found '0.1'"),
    ("metrics.acc = abc", "Expected numeric value type for metric. Found abc"),
    ("metrics.acc > 1e+5", "Expected numeric value type for metric. Found 1e+5"),
    ("metrics.acc LIKE 1", "Invalid comparator 'LIKE' not one of '<comparators of numbers>"),
    ("metrics.acc == 1", "Invalid comparator '==' not one of '<comparators of numbers>"),
    ("metrics.acc <> 1", "Invalid comparator '<>' not one of '<comparators of numbers>"),
    ("metrics.m1.5 > 1", "<invalid> 'metrics.m1'"),
    ("metrics.a-b > 1", "Invalid comparison clause. Expected 'Identifier' found 'metrics.a-b'"),
    ("metrics.`a-b` ~ 1", "Invalid comparator '~' not one of '<comparators of numbers>"),
    ("params.lr > '1'", "Invalid comparator '>' not one of '<comparators of keys>'"),
    ("params.lr NOT LIKE '1'", "Invalid comparator 'NOT LIKE' not one of '<comparators of keys>'"),
    ("tags.k RLIKE 'a'", "Invalid comparator 'RLIKE' not one of '<comparators of keys>"),
    ("status > 'a'", "Invalid comparator '>' not one of '<comparators of texts>'"),
    ("start_time LIKE 5", "Invalid comparator 'LIKE' not one of '<comparators of texts>"),
    ("start_time = '5'", "Expected numeric value type for numeric attribute: start_time. Found '5'"),
    ("start_time IN (1)", "Expected numeric value type for numeric attribute: start_time. Found (1)"),
    (
        "start_time > DATE '2024-01-01'",
        "Expected numeric value type for numeric attribute: start_time. Found DATE '2024-01-01'",
    ),
    ("dataset.name > 'a'", "Invalid comparator '>' not one of '<comparators of texts>"),
    (
        "dataset.profile = 'a'",
        "Invalid dataset key 'profile' specified. Valid keys are '{'context', 'digest', 'name'}'",
    ),
    ("dataset.name = 5", "Expected a quoted string value for dataset attributes. Got value 5"),
    ("foo = 'a'", "Invalid attribute key 'foo' specified. Valid keys are '<run attributes>'"),
    ("foo.bar = 'a'", "Invalid entity type 'foo'. Valid values are <entity types>"),
    ("Metrics.acc = 1", "Invalid entity type 'Metrics'. Valid values are <entity types>"),
    ("`metrics`.acc LIKE 1", "Invalid comparator 'LIKE' not one of '<comparators of numbers>"),
    ("name = 'a'", "Invalid attribute key 'name' specified. Valid keys are '<run attributes>'"),
    ("order = 'a'", "<invalid> 'order', '=', ''a''"),
    ("attributes.order = 'a'", "Invalid attribute key 'order' specified. Valid keys are '<run attributes>'"),
    ("timestamp > 1", "<invalid> 'timestamp', '>', '1'"),
    ("metrics.in = 1", "<invalid> 'metrics.', 'in', '=', '1'"),
    ("key = 'a'", "<invalid> 'key', '=', ''a''"),
    ("status IN ('a')", "Only ['run_id'] attributes support comparison with a list of quoted string values."),
    ("run_name IN ('a')", "Only ['run_id'] attributes support comparison with a list of quoted string values."),
    ("params.lr IN ('a')", "Expected a quoted string value for parameter (e.g. 'my-value'). Got value ('a')"),
    ("metrics.acc IN (1)", "Expected numeric value type for metric. Found (1)"),
    (
        "run_id IN ()",
        "While parsing a list in the query, expected a non-empty list of string values, but got empty list",
    ),
    ("run_id IN ('a' b)", "<ill-formed>"),
    (
        "run_id IN (1, 2)",
        "While parsing a list in the query, expected string value, punctuation, or whitespace, but got different type \
         in list: (1, 2)",
    ),
    ("run_id IN 'a'", "<invalid> 'run_id', 'IN', ''a''"),
    ("run_id IN", "<invalid> 'run_id', 'IN'"),
    ("metrics.acc IS NULL", "IS NULL / IS NOT NULL is only supported for tags and params, not for 'metric' 'acc'"),
    ("status IS NOT NULL", "IS NULL / IS NOT NULL is only supported for tags and params, not for 'attribute' 'status'"),
    ("dataset.name IS NULL", "IS NULL / IS NOT NULL is only supported for tags and params, not for 'dataset' 'name'"),
    ("params.lr IS 'a'", "<invalid> 'params.lr', 'IS', ''a''"),
    ("params.lr = NULL", "Expected a quoted string value for parameter (e.g. 'my-value'). Got value NULL"),
    (
        "params.lr = null AND metrics.acc > 1",
        "Expected a quoted string value for parameter (e.g. 'my-value'). Got value null",
    ),
    ("params.lr IS  NULL X", "<invalid> 'X'"),
    (
        "status = 'a'; status = 'b'",
        r#"Search filter contained multiple expression "status = 'a'; status = 'b'". Provide AND-ed expression list."#,
    ),
    ("status = 'a';", "<invalid> ';'"),
    ("status = 'a' -- note", "<invalid> '-- note'"),
    ("status = 'a' -- note\nAND metrics.acc > 1", "Invalid comparison clause. Expected 3 tokens found 4"),
    ("/* c */ status = 'a'", "<invalid> '/* c */'"),
    ("status = 'a', metrics.acc > 1", "<invalid> 'status = 'a', metrics.acc > 1'"),
    (
        "status = 'a' && metrics.acc > 1",
        "Invalid comparison clause. Expected 'Identifier' found 'status = 'a' && metrics.acc'",
    ),
    ("not status = 'a'", "<invalid> 'not'"),
    ("metrics.acc between 1 and 2", "<invalid> 'metrics.acc', 'between', '1', '2'"),
    ("a = b = c", "Invalid comparison clause. Expected 'Identifier' found 'a = b'"),
    ("where status = 'a'", "<invalid> 'where status = 'a''"),
    ("status = 'a' order by metrics.acc", "<invalid> 'order by', 'metrics.acc'"),
    ("status = 'a' limit 5", "<invalid> 'limit', '5'"),
    ("abs(metrics.acc) > 1", "Invalid comparison clause. Expected 'Identifier' found 'abs(metrics.acc)'"),
    ("metrics.acc > 1 + 2", "Expected numeric value type for metric. Found 1 + 2"),
    ("status = 'a' b", "<invalid> 'status = 'a' b'"),
    ("   ", "Invalid filter '   '. Could not be parsed."),
    ("\n", "Invalid filter '\n'. Could not be parsed."),
    (r"params.lr = 'it\'s' AND x", "<invalid> 'x'"),
    ("metrics.acc > 0x1F", "<invalid> 'metrics.acc', '>', '0x1F'"),
    ("status := 'a'", "<invalid> 'status := 'a''"),
    ("params.a b = 'c'", "<invalid> 'params.a'"),
    ("metrics . acc > 1", "Invalid entity type 'metrics '. Valid values are <entity types>"),
    ("attribute. = 'a'", "Invalid attribute key '' specified. Valid keys are '<run attributes>'"),
];
const EXPERIMENT_FILTERS: &[(&str, &str)] = &[
    ("name = 'a' OR name = 'b'", "<invalid> OR"),
    ("(name = 'a')", "<invalid> (name = 'a')"),
    ("name like 'a'", "Invalid comparator 'like' not one of '<comparators of texts>'"),
    ("name > 'a'", "Invalid comparator '>' not one of '<comparators of texts>'"),
    ("name IN ('a')", "Only ['experiment_id'] attributes support comparison with a list of quoted string values."),
    ("name = 5", "Expected a quoted string value for attributes. Got value 5"),
    ("name = a", "<unquoted> a. <use quotes>"),
    ("name IS NULL", "IS NULL / IS NOT NULL is only supported for tags, not for attribute 'name'"),
    ("tags.a > 'b'", "Invalid comparator for tag: >"),
    ("tags.a like 'b'", "Invalid comparator for tag: like"),
    ("tags.a IN ('b')", "Expected a quoted string value for tag (e.g. 'my-value'). Got value ('b')"),
    ("tags.a = 5", "Expected a quoted string value for tag (e.g. 'my-value'). Got value 5"),
    ("params.a = 'b'", "Invalid entity type 'params'. Valid entity types are ('attribute', 'tag', 'tags')"),
    ("attributes.name = 'a'", "Invalid entity type 'attributes'. Valid entity types are ('attribute', 'tag', 'tags')"),
    ("foo = 'a'", "Invalid attribute key 'foo' specified. Valid keys are '<experiment attributes>'"),
    ("creation_time = 'x'", "Expected numeric value type for numeric attribute: creation_time. Found 'x'"),
    ("creation_time > 1.5", "Invalid value for numeric attribute 'creation_time': '1.5'"),
    ("creation_time > 1e20", "Invalid value for numeric attribute 'creation_time': '1e+20'"),
    ("creation_time LIKE 5", "Invalid comparator 'LIKE' not one of '<comparators of texts>"),
    ("last_update_time IN (1)", "Expected numeric value type for numeric attribute: last_update_time. Found (1)"),
    ("experiment_id = 5", "Expected a quoted string value for attributes. Got value 5"),
    ("experiment_id = 'abc'", "Invalid experiment ID 'abc'. Experiment ID must be a valid integer."),
    ("experiment_id = ''", "Invalid experiment ID ''. Experiment ID must be a valid integer."),
    ("experiment_id IN ('1', 'x')", "Invalid experiment ID 'x'. Experiment ID must be a valid integer."),
    ("experiment_id in ('1')", "Invalid comparator for experiment_id: in"),
    ("experiment_id LIKE '1'", "Invalid comparator for experiment_id: LIKE"),
    ("experiment_id > '1'", "Invalid comparator for experiment_id: >"),
    (
        "experiment_id IN ()",
        "While parsing a list in the query, expected a non-empty list of string values, but got empty list",
    ),
    (
        "name = 'a'; name = 'b'",
        r#"Search filter contained multiple expression "name = 'a'; name = 'b'". Provide AND-ed expression list."#,
    ),
    (" ", "Invalid filter ' '. Could not be parsed."),
];
const RUN_ORDERS: &[(&str, &str)] = &[
    ("", "Invalid order_by clause ''. Could not be parsed."),
    ("a b c", "Invalid order_by clause 'a b c'. Could not be parsed."),
    (" metrics.acc", "Invalid order_by clause ' metrics.acc'. Could not be parsed."),
    ("metrics.acc ", "Invalid order_by clause 'metrics.acc '. Could not be parsed."),
    ("metrics.acc foo", "Invalid ordering key in order_by clause 'metrics.acc foo'."),
    ("metrics.acc desc nulls last", "Invalid order_by clause 'metrics.acc desc nulls last'. Could not be parsed."),
    ("metrics.acc, metrics.loss", "Invalid order_by clause 'metrics.acc, metrics.loss'. Could not be parsed."),
    ("foo", "Invalid attribute key 'foo' specified. Valid keys are '<sortable attributes>'"),
    ("name", "Invalid attribute key 'name' specified. Valid keys are '<sortable attributes>'"),
    ("`run name`", "Invalid attribute key 'run name' specified. Valid keys are '<sortable attributes>'"),
    ("datasets.name", "Invalid identifier type 'dataset'"),
    ("foo.bar", "Invalid entity type 'foo'. Valid values are <entity types>"),
    ("order", "Invalid order_by clause 'order'. Could not be parsed."),
    ("timestamp DESC", "Invalid attribute key 'timestamp' specified. Valid keys are '<sortable attributes>'"),
    ("metrics.a-b", "Invalid order_by clause 'metrics.a-b'. Could not be parsed."),
    ("metrics.acc; status", "Invalid order_by clause 'metrics.acc; status'. Could not be parsed."),
    ("it's", "Invalid order_by clause 'it's'. Could not be parsed."),
    ("-metrics.acc", "Invalid order_by clause '-metrics.acc'. Could not be parsed."),
];
const EXPERIMENT_ORDERS: &[(&str, &str)] = &[
    ("foo", "Invalid attribute key 'foo' specified. Valid keys are '<experiment attributes>'"),
    ("metrics.acc", "Invalid entity type 'metrics'. Valid entity types are ('attribute', 'tag', 'tags')"),
    ("tags.a", "Invalid order_by entity: tag"),
    ("name foo", "Invalid ordering key in order_by clause 'name foo'."),
    ("timestamp", "Invalid attribute key 'timestamp' specified. Valid keys are '<experiment attributes>'"),
    ("name,", "Invalid order_by clause 'name,'. Could not be parsed."),
    ("attribute.foo desc", "Invalid attribute key 'foo' specified. Valid keys are '<experiment attributes>'"),
];

#[test]
fn run_filters() {
    for (filter, message) in RUN_FILTERS {
        let error = parse_run_search(filter, &[]).expect_err(filter);
        assert_eq!((error.code, error.message), (ErrorCode::InvalidParameterValue, in_full(message)), "{filter}");
    }
}

#[test]
fn experiment_filters() {
    for (filter, message) in EXPERIMENT_FILTERS {
        let error = parse_experiment_search(filter, &[]).expect_err(filter);
        assert_eq!((error.code, error.message), (ErrorCode::InvalidParameterValue, in_full(message)), "{filter}");
    }
}

#[test]
fn orderings() {
    for (clause, message) in RUN_ORDERS {
        let error = parse_run_search("", &owned(&[clause])).expect_err(clause);
        assert_eq!((error.code, error.message), (ErrorCode::InvalidParameterValue, in_full(message)), "{clause}");
    }
    for (clause, message) in EXPERIMENT_ORDERS {
        let error = parse_experiment_search("", &owned(&[clause])).expect_err(clause);
        assert_eq!((error.code, error.message), (ErrorCode::InvalidParameterValue, in_full(message)), "{clause}");
    }
}

#[test]
fn sorting_twice_by_the_same_is_an_internal_error() {
    for (clauses, printed) in [
        (&["metrics.x", "metrics.`x` DESC"][..], "['metrics.x', 'metrics.`x` DESC']"),
        (&["created", "params.it", "start_time"], "['created', 'params.it', 'start_time']"),
        (&["tags.\"it's\"", "tags.\"it's\""], r#"['tags."it\'s"', 'tags."it\'s"']"#),
    ] {
        let error = parse_run_search("", &owned(clauses)).unwrap_err();
        assert_eq!(error.code, ErrorCode::InternalError);
        assert_eq!(error.message, format!("`order_by` contains duplicate fields: {printed}"));
    }
}

#[test]
fn the_mistake_mlflow_finds_first_is_reported() {
    let first = |filter, order_by| parse_run_search(filter, &owned(order_by)).unwrap_err().message;
    assert!(first("foo = 'a'", &["bar"]).starts_with("Invalid attribute key 'foo'"));
    assert!(first("metrics.acc LIKE 1", &["bar"]).starts_with("Invalid attribute key 'bar'"));
    assert!(first("metrics.acc LIKE 1 AND foo = 'a'", &[]).starts_with("Invalid attribute key 'foo'"));
    assert!(first("metrics.acc LIKE 1 AND params.a > 'b'", &[]).starts_with("Invalid comparator 'LIKE'"));
    let of_experiments = parse_experiment_search("name > 'a'", &owned(&["foo"])).unwrap_err().message;
    assert!(of_experiments.starts_with("Invalid comparator '>'"));
}

#[test]
fn a_number_beyond_64_bits_is_refused() {
    let error = parse_run_search("start_time > 99999999999999999999", &[]).unwrap_err();
    assert_eq!(error.code, ErrorCode::InvalidParameterValue);
}

#[test]
fn a_text_of_too_many_parts_is_refused() {
    let filter = "( ".repeat(10_000);
    let error = parse_run_search(&filter, &[]).unwrap_err();
    assert_eq!(error.message, format!("Error on parsing filter '{filter}'"));
}
