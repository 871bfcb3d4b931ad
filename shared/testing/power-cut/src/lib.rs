//! For tests: what SQLite's files are after a power cut.
//!
//! `kill -9` ends a process, but its writes are in the operating system's cache and still reach the
//! disk. A power cut loses writes that were not synced. [`Disk::watch`] puts a layer between SQLite
//! and its default file system. SQLite works on its files as ever. In parallel, the layer keeps
//! what a disk would hold. A write gets there with the next sync of its file, and a new file with
//! its first sync. A deletion gets there with the sync of the directory (SQLite syncs it with each
//! new journal). At any moment the disk's content can be written into another directory, as an
//! [`Image`], and opened there.
//!
//! A disk may also have taken some unsynced writes, in any order and in parts. Before each sync,
//! and sometimes before a write, the layer takes such an image too. A seed decides which parts it
//! holds.

mod disk;
mod file;
mod image;
mod state;
mod vfs;

pub use disk::Disk;
pub use image::Image;
