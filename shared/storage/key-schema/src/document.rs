//! `docs/table.md`, generated.

use std::fmt::Write;

use crate::access_rows;
use crate::attributes::AttributeDescription;
use crate::definition::{GLOBAL_INDEXES, LOCAL_INDEXES};
use crate::index::INDEX_KEYS;
use crate::rows::{ROWS, RowDescription};

const HEAD: &str = "\
# The table

Generated from the `key-schema` crate by `make docs`; do not edit.

One DynamoDB table of data, keys `PK` and `SK`, five local and five global secondary indexes that hold keys only, a stream with new
and old images, TTL on `ttl`. Between `<` and `>` stands a typed segment: names are encoded so that they hold no `#` and keep
their order, numbers are of fixed width and sort like numbers. A name too long for a key is cut and ends in its hash; the item
then holds the whole name. A workspace other than `default` is part of the names of registered models. Beside it is [the table of access](#the-table-of-access).

## Rows

| partition key | sort key | row | what it holds |
|---|---|---|---|
";

const ATTRIBUTES: &str = "
## Attributes

What the items of each row hold, beside their keys and those of the indexes they stand in. Any may be missing unless the code that
reads it says otherwise. Rows that are not named here have no other attributes, or belong to a domain that is not built yet.
";

const ACCESS: &str = "
## The table of access

Who users are, and what roles they have: keys `PK` and `SK`, no index, no stream, TTL on `ttl`. Functions that serve data may only read
it. What a user is granted himself is in the table of data.

| partition key | sort key | row | what it holds |
|---|---|---|---|
";

const FOOT: &str = "
The attributes of an index's keys are called by it: `lsi1sk`, `gsi1pk` and `gsi1sk`. LSIs are read consistently. GSIs are behind by moments; none of them guards uniqueness or resolves an id made by this server.
";

/// The text of `docs/table.md`.
#[must_use]
pub fn markdown() -> String {
    let mut text = String::from(HEAD);
    keys(&mut text, ROWS);
    text.push_str(
        "\n## Indexes\n\n| index | partition key | sort key | carried by | what it answers |\n|---|---|---|---|---|\n",
    );
    for index in LOCAL_INDEXES.iter().chain(&GLOBAL_INDEXES) {
        let mut keys = INDEX_KEYS.iter().filter(|key| key.index == index).peekable();
        if keys.peek().is_none() {
            let reason =
                if index.is_global() { "nothing asks for it yet" } else { "an LSI cannot be added to a table later" };
            let _ = writeln!(text, "| {} | | | | kept free: {reason} |", index.name);
        }
        for key in keys {
            let rows: Vec<_> = key.rows.iter().map(|row| row.name).collect();
            let (rows, purpose) = (rows.join(", "), key.purpose.trim());
            let _ = writeln!(text, "| {} | `{}` | `{}` | {rows} | {purpose} |", index.name, key.partition, key.sort);
        }
    }
    text.push_str(FOOT);
    text.push_str(ATTRIBUTES);
    attributes(&mut text, ROWS);
    text.push_str(ACCESS);
    keys(&mut text, access_rows::ROWS);
    attributes(&mut text, access_rows::ROWS);
    text
}

fn keys(text: &mut String, rows: &[RowDescription]) {
    let mut partition = "";
    for row in rows {
        let shown = if row.pk == partition { String::new() } else { format!("`{}`", row.pk) };
        partition = row.pk;
        let name = if row.attributes().next().is_some() {
            format!("[{}](#{})", row.name, row.name.to_lowercase())
        } else {
            row.name.to_owned()
        };
        let _ = writeln!(text, "| {shown} | `{}` | {name} | {} |", row.sk, row.purpose.trim());
    }
}

fn attributes(text: &mut String, rows: &[RowDescription]) {
    for row in rows.iter().filter(|row| row.attributes().next().is_some()) {
        let _ = write!(text, "\n### {}\n\n`{}` / `{}`", row.name, row.pk, row.sk);
        let indexes: Vec<_> = row.indexes().map(|index| index.name).collect();
        if !indexes.is_empty() {
            let _ = write!(text, ", in {}", indexes.join(", "));
        }
        text.push_str("\n\n| attribute | type | what it holds |\n|---|---|---|\n");
        for AttributeDescription { name, kind, is_required, about } in row.attributes() {
            let optional = if *is_required || kind.code == "BS" { "" } else { ", optional" };
            let _ = writeln!(text, "| `{name}` | {}{optional} | {about} |", kind.name());
        }
    }
}
