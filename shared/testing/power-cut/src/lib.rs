//! Simulates, in tests, what a power cut leaves of SQLite's files.
//!
//! `kill -9` ends a process, but its writes are in the operating system's cache and still reach the
//! disk. A power cut loses writes that were not synced. [`WatchedDisk::watch`] puts a layer between
//! SQLite and its default file system. SQLite works on its files as usual. In parallel, the layer
//! tracks what a disk would contain. A write reaches the disk with the next sync of its file, and a
//! new file with its first sync. A deletion reaches the disk when the directory is synced (SQLite
//! does this with each new journal). At any time, the content of the disk can be written to another
//! directory, as a [`DiskImage`], and opened there.
//!
//! A disk may also have written some unsynced changes, in any order and partially. Before each
//! sync, and sometimes before a write, the layer therefore takes an image that contains parts of
//! the unsynced changes. A seed determines which parts.

mod disk;
mod file;
mod image;
mod state;
mod vfs;

pub use disk::WatchedDisk;
pub use image::DiskImage;
