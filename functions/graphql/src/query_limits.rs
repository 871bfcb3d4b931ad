//! Limits for queries: those of MLflow (`graphql_no_batching.py`), and additional ones of this
//! server.

use std::collections::{HashMap, HashSet, VecDeque};

use apollo_compiler::ast::{Definition, Document, Field, Selection};

/// Maximum length of a query, in bytes. The user interface's queries are shorter than 2,000 bytes.
pub(crate) const MAX_QUERY_BYTES: usize = 64 << 10;
/// Maximum nesting in a query, for example of lists. Without a limit, the parser could overflow its
/// stack.
pub(crate) const MAX_NESTING: usize = 64;
/// Maximum number of runs whose model versions one query may select, over all of its searches. The
/// limit is needed because each run takes a request.
pub(crate) const MAX_RUNS_WITH_VERSIONS: usize = 1_000;
/// Maximum weight of a response: the number of bytes of its texts, plus 32 for each field.
pub(crate) const MAX_RESPONSE_WEIGHT: usize = 64 << 20;
/// Maximum size of all endpoint responses to one query, in bytes of JSON.
pub(crate) const MAX_READ_BYTES: usize = 64 << 20;

const MAX_ROOT_FIELDS: usize = 10;
const MAX_ALIASES: usize = 10;
const MAX_DEPTH: usize = 10;
const MAX_SELECTIONS: usize = 1_000;
/// Maximum number of fragment spreads and inline fragments. If a fragment contains a spread, the
/// spread is counted once for each time that the fragment is spread. MLflow counts spreads as
/// selections as well.
const MAX_SPREADS: usize = 10_000;
/// Maximum number of selections in an operation that queries the schema. It is low because the
/// schema's types refer to each other without end.
const MAX_SCHEMA_SELECTIONS: usize = 100;

/// Checks a document against MLflow's limits before it is validated against the schema. The check
/// covers all operations of the document, with fragments expanded.
///
/// # Errors
/// Returns MLflow's message for the first limit that is exceeded.
pub(crate) fn check(document: &Document) -> Result<(), String> {
    let fragments: Fragments = document.definitions.iter().filter_map(fragment).collect();
    let (mut root_fields, mut aliases, mut selections, mut limit) = (0, 0, 0, MAX_SELECTIONS);
    let mut spreads = 0;
    for definition in &document.definitions {
        let Definition::OperationDefinition(operation) = definition else { continue };
        let mut stack = vec![(operation.selection_set.as_slice(), 1)];
        while let Some((selection_set, depth)) = stack.pop() {
            if depth > MAX_DEPTH {
                return Err(format!("Query exceeds maximum depth of {MAX_DEPTH}"));
            }
            let fields = fields(selection_set, &fragments, &mut spreads);
            if spreads > MAX_SPREADS {
                return Err(format!("Query exceeds maximum total spreads of {MAX_SPREADS}"));
            }
            for field in &fields {
                if depth == 1 {
                    root_fields += 1;
                    if matches!(field.name.as_str(), "__schema" | "__type") {
                        limit = MAX_SCHEMA_SELECTIONS;
                    }
                }
                if !field.selection_set.is_empty() {
                    stack.push((&field.selection_set, depth + 1));
                }
                selections += 1;
                if selections > limit {
                    return Err(format!("Query exceeds maximum total selections of {limit}"));
                }
            }
            aliases = aliases.max(fields.iter().filter(|field| field.alias.is_some()).count());
        }
    }
    let too_many = |found: usize, limit: usize, what: &str, variable: &str| {
        format!(
            "GraphQL queries should have at most {limit} {what}, got {found} {what}. To increase the limit, set the {variable} \
             environment variable."
        )
    };
    if root_fields > MAX_ROOT_FIELDS {
        return Err(too_many(root_fields, MAX_ROOT_FIELDS, "root fields", "MLFLOW_SERVER_GRAPHQL_MAX_ROOT_FIELDS"));
    }
    if aliases > MAX_ALIASES {
        return Err(too_many(aliases, MAX_ALIASES, "aliases", "MLFLOW_SERVER_GRAPHQL_MAX_ALIASES"));
    }
    Ok(())
}

type Fragments<'a> = HashMap<&'a str, &'a [Selection]>;

fn fragment(definition: &Definition) -> Option<(&str, &[Selection])> {
    match definition {
        Definition::FragmentDefinition(fragment) => Some((fragment.name.as_str(), &fragment.selection_set)),
        _ => None,
    }
}

/// Returns the fields of one level of a query, including the fields in its fragments. Each fragment
/// is expanded once. Adds the number of fragment spreads to `spreads`.
fn fields<'a>(selection_set: &'a [Selection], fragments: &Fragments<'a>, spreads: &mut usize) -> Vec<&'a Field> {
    let (mut fields, mut seen) = (Vec::new(), HashSet::new());
    let mut left: VecDeque<&Selection> = selection_set.iter().collect();
    while let Some(selection) = left.pop_front() {
        *spreads += usize::from(!matches!(selection, Selection::Field(_)));
        match selection {
            Selection::Field(field) => fields.push(field.as_ref()),
            Selection::InlineFragment(inline) => left.extend(&inline.selection_set),
            Selection::FragmentSpread(spread) => {
                let name = spread.fragment_name.as_str();
                if seen.insert(name) {
                    left.extend(fragments.get(name).copied().unwrap_or_default());
                }
            }
        }
    }
    fields
}
