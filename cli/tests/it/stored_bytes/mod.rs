//! Generates `docs/reference/stored-bytes.md`: how many bytes [traces] and [runs] take in the table.
//! `make test-slow` measures many of them, and rewrites the page with `UPDATE_DOCS=1`. `make test`
//! measures fewer, and compares the results with the page.

mod items;
mod page;
mod runs;
mod traces;
