//! For tests: what SQLite's files are after a power cut.
//!
//! `kill -9` ends a process, but what it wrote is in the operating system's cache and still reaches the disk. A power cut loses what
//! was not synced. [`Disk::watch`] puts a layer between SQLite and its default file system: SQLite works on its files as ever, and
//! beside them the layer keeps what a disk would hold. A write gets there with the next sync of its file, a new file with its first
//! sync, a deletion with the sync of the directory (SQLite syncs it with each new journal). At any moment the disk's content can be written into another directory, as an
//! [`Image`], and opened there.
//!
//! A disk may also have taken some of what was not synced, in any order and in parts. Before each sync, and now and then before a
//! write, the layer takes such an image, too; which parts it holds, a seed decides.

mod disk;
mod file;
mod image;
mod state;
mod vfs;

pub use disk::Disk;
pub use image::Image;
