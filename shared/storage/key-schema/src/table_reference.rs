//! Generates `docs/reference/table.md`.

use std::fmt::Write;

use crate::access_rows;
use crate::attributes::AttributeDescription;
use crate::definition::{GLOBAL_INDEXES, LOCAL_INDEXES};
use crate::index::INDEX_KEYS;
use crate::rows::{ROWS, RowDescription};

const PAGE_HEAD: &str = "\
# The table

Generated from the `key-schema` crate by `make docs`; do not edit.

The data table is one DynamoDB table with the keys `PK` and `SK`, five local and five global secondary indexes that project only keys, a
stream with new and old images, and TTL on `ttl`. Typed segments of keys are between `<` and `>`: names are encoded so that they contain no
`#` and keep their order, numbers have a fixed width and sort like numbers. A name that is too long for a key is truncated and ends in its
hash; the item then holds the whole name. A workspace other than `default` is part of the names of registered models. Users and roles are
in [the access table](#the-access-table).

## Rows

| partition key | sort key | row | what it holds |
|---|---|---|---|
";

const ATTRIBUTES: &str = "
## Attributes

The attributes of each row's items, except their keys and those of indexes. Every item has the attributes that are not optional; a set
without elements is missing. Rows that are not listed here have no further attributes, or belong to a domain that does not exist yet.
";

const ACCESS: &str = "
## The access table

Users and their roles: keys `PK` and `SK`, no indexes, no stream, TTL on `ttl`. Functions that serve data can only read it. Grants that are
given to users directly are in the data table.

| partition key | sort key | row | what it holds |
|---|---|---|---|
";

const PAGE_FOOT: &str = "
The key attributes of an index are named after it: `lsi1sk`, `gsi1pk` and `gsi1sk`. LSIs are read with strong consistency. GSIs lag behind by moments, so none of them enforces uniqueness or resolves an id that this server made.
";

/// Returns the content of `docs/reference/table.md`.
#[must_use]
pub fn markdown() -> String {
    let mut text = String::from(PAGE_HEAD);
    keys(&mut text, ROWS);
    text.push_str(
        "\n## Indexes\n\n| index | partition key | sort key | carried by | what it answers |\n|---|---|---|---|---|\n",
    );
    for index in LOCAL_INDEXES.iter().chain(&GLOBAL_INDEXES) {
        let mut keys = INDEX_KEYS.iter().filter(|key| key.index == index).peekable();
        if keys.peek().is_none() {
            let reason =
                if index.is_global() { "no query needs it yet" } else { "an LSI cannot be added to an existing table" };
            let _ = writeln!(text, "| {} | | | | reserved: {reason} |", index.name);
        }
        for key in keys {
            let rows: Vec<_> = key.rows.iter().map(|row| row.name).collect();
            let (rows, purpose) = (rows.join(", "), key.purpose.trim());
            let _ = writeln!(text, "| {} | `{}` | `{}` | {rows} | {purpose} |", index.name, key.partition, key.sort);
        }
    }
    text.push_str(PAGE_FOOT);
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
