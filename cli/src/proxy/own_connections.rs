//! Restricts connections to those of the proxy's own user.
//!
//! The cookie of `session.rs` alone does not protect against other users of the machine: browsers
//! send the cookies of one port to all ports of the host, so the server of another user may receive
//! it. Linux lists the user of each connection in `/proc/net/tcp`. Other systems do not, and only
//! the cookie protects there.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::unix::fs::MetadataExt;

use axum::serve::Listener;
use tokio::net::{TcpListener, TcpStream};

/// Maximum number of attempts to find a connection in the system's list. A single read of the list
/// may miss it while other connections come and go.
const MAX_ATTEMPTS: usize = 3;
/// Root is accepted, because root has full access anyway, and relays into virtual machines run as
/// root.
const ROOT_USER: u32 = 0;

/// Listener that accepts connections of this process's user and of root, and closes all others.
pub(crate) struct OwnConnections {
    listener: TcpListener,
    address: SocketAddr,
    /// The user of this process, or `None` if the system does not list the users of connections.
    user: Option<u32>,
}

impl OwnConnections {
    /// Wraps a listener at this address.
    pub(crate) fn of(listener: TcpListener, address: SocketAddr) -> Self {
        let is_listed = (0..MAX_ATTEMPTS).any(|_| table().contains(&format!(" {} ", format_address(address))));
        if cfg!(target_os = "linux") && !is_listed {
            tracing::warn!("users of this machine cannot be distinguished: only the cookie protects the proxy");
        }
        let process = std::fs::metadata("/proc/self").ok().filter(|_| is_listed);
        Self { listener, address, user: process.map(|process| process.uid()) }
    }
}

impl Listener for OwnConnections {
    type Io = TcpStream;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (TcpStream, SocketAddr) {
        loop {
            let (connection, peer) = Listener::accept(&mut self.listener).await;
            // No await may follow here, because a caller that stops waiting would lose the accepted
            // connection. Reading the list blocks for a few milliseconds on a busy machine.
            let owner = || (0..MAX_ATTEMPTS).find_map(|_| owner(&table(), peer, self.address));
            if self.user.is_none_or(|user| is_accepted(user, owner())) {
                return (connection, peer);
            }
            tracing::warn!(%peer, "closing a connection of another user of this machine");
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

/// Returns whether a proxy that runs as `user` accepts a connection of `owner`. A connection
/// without an owner is rejected: its other end is already closed, but may have sent a request
/// before.
fn is_accepted(user: u32, owner: Option<u32>) -> bool {
    owner.is_some_and(|owner| owner == user || owner == ROOT_USER)
}

/// Reads the system's list of connections.
fn table() -> String {
    let read = |path| std::fs::read_to_string(path).unwrap_or_default();
    format!("{}\n{}", read("/proc/net/tcp"), read("/proc/net/tcp6"))
}

/// Positions of the columns for user and inode, counted after the two addresses.
const USER_COLUMN: usize = 4;
const INODE_COLUMN: usize = 6;

/// Returns the user of the `peer` end of a connection to `address`, or `None` if that end is
/// closed.
fn owner(table: &str, peer: SocketAddr, address: SocketAddr) -> Option<u32> {
    let ends = [(peer, address), (mapped(peer), mapped(address))];
    let ends = ends.map(|(from, to)| format!(" {} {} ", format_address(from), format_address(to)));
    let (_, rest) = ends.iter().find_map(|ends| table.split_once(ends))?;
    let columns: Vec<_> = rest.lines().next()?.split_ascii_whitespace().collect();
    // A closed socket has no inode, and is listed with root as its user.
    columns.get(INODE_COLUMN).filter(|inode| **inode != "0")?;
    columns.get(USER_COLUMN)?.parse().ok()
}

/// Returns the address in its IPv6 form, in which IPv4 addresses are mapped.
fn mapped(address: SocketAddr) -> SocketAddr {
    match address.ip() {
        IpAddr::V4(ip) => SocketAddr::new(ip.to_ipv6_mapped().into(), address.port()),
        IpAddr::V6(_) => address,
    }
}

/// Formats the address like the system's list: as 32-bit words in native byte order.
fn format_address(address: SocketAddr) -> String {
    let octets = match address.ip() {
        IpAddr::V4(ip) => ip.octets().to_vec(),
        IpAddr::V6(ip) => ip.octets().to_vec(),
    };
    let words = octets.chunks_exact(4).map(|word| u32::from_ne_bytes([word[0], word[1], word[2], word[3]]));
    let words: Vec<_> = words.map(|word| format!("{word:08X}")).collect();
    format!("{}:{:04X}", words.concat(), address.port())
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "\
  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:1389 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 31 1 0 100 0 0 10 0
   1: 0100007F:1389 0100007F:C001 01 00000000:00000000 00:00000000 00000000  1000        0 32 1 0 20 4 30 10 -1
   2: 0100007F:C001 0100007F:1389 01 00000000:00000000 00:00000000 00000000  1001        0 33 1 0 20 4 30 10 -1
   3: 0100007F:C002 0100007F:1389 04 00000000:00000000 00:00000000 00000000     0        0 0 1 0 20 4 30 10 -1
   4: 0100007F:1389 0100007F:C003 01 00000000:00000000 00:00000000 00000000  1000        0 34 1 0 20 4 30 10 -1
  sl  local_address                         remote_address                        st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0000000000000000FFFF00000100007F:C004 0000000000000000FFFF00000100007F:1389 01 00000000:00000000 00:00000000 00000000  1002        0 35
   1: 00000000000000000000000001000000:C005 00000000000000000000000001000000:1389 01 00000000:00000000 00:00000000 00000000  1003        0 36
";

    #[cfg(target_endian = "little")]
    #[test]
    fn the_other_end_of_a_connection_has_a_user() {
        let proxy: SocketAddr = "127.0.0.1:5001".parse().unwrap();
        for (port, expected) in
            [(0xC001, Some(1001)), (0xC002, None), (0xC003, None), (0xC004, Some(1002)), (0xC006, None)]
        {
            assert_eq!(owner(TABLE, SocketAddr::new(proxy.ip(), port), proxy), expected, "{port:x}");
        }
        assert_eq!(owner(TABLE, "[::1]:49157".parse().unwrap(), "[::1]:5001".parse().unwrap()), Some(1003));
    }

    #[test]
    fn another_user_is_not_let_in() {
        for (owner, expected) in [(Some(1000), true), (Some(ROOT_USER), true), (Some(1001), false), (None, false)] {
            assert_eq!(is_accepted(1000, owner), expected, "{owner:?}");
        }
    }

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn a_connection_of_this_process_is_its_users() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let connection = TcpStream::connect(address).await.unwrap();
        let user = std::fs::metadata("/proc/self").unwrap().uid();
        let peer = connection.local_addr().unwrap();
        assert_eq!((0..MAX_ATTEMPTS).find_map(|_| owner(&table(), peer, address)), Some(user));
        assert_eq!(OwnConnections::of(listener, address).user, Some(user));
    }
}
