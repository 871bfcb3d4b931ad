//! The addresses that may be connected to: global unicast addresses.
//!
//! The table `BLOCKS` contains the blocks of IANA's special-purpose address registries that are not
//! globally reachable, the multicast blocks, and the IPv6 blocks whose addresses contain an IPv4
//! address, because a gateway would forward packets to that address. Blocks are refused as a whole,
//! even if the registry lists a globally reachable exception in them, because no public server has
//! one of these exceptional addresses.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use thiserror::Error;

/// An address that is not allowed, and the reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("{address} is not a public address ({reason})")]
pub struct RefusedAddress {
    /// The address.
    pub address: IpAddr,
    /// Name of the special-purpose block that contains the address.
    pub reason: &'static str,
}

/// A block of addresses that are not public.
#[derive(Clone, Copy)]
struct SpecialBlock {
    network: IpAddr,
    prefix_length: u32,
    name: &'static str,
    /// Whether servers of a private network, or of this machine, have addresses in this block. They
    /// are allowed if the operator allows private peers.
    is_private: bool,
}

/// Reason for refusing IPv6 addresses outside the blocks from which unicast addresses are
/// allocated.
const NOT_GLOBAL_UNICAST: &str = "not global unicast";

const fn v4(octets: [u8; 4], prefix_length: u32, name: &'static str) -> SpecialBlock {
    let [a, b, c, d] = octets;
    SpecialBlock { network: IpAddr::V4(Ipv4Addr::new(a, b, c, d)), prefix_length, name, is_private: false }
}

const fn v6(network: u128, prefix_length: u32, name: &'static str) -> SpecialBlock {
    SpecialBlock { network: IpAddr::V6(Ipv6Addr::from_bits(network)), prefix_length, name, is_private: false }
}

const fn private(block: SpecialBlock) -> SpecialBlock {
    SpecialBlock { is_private: true, ..block }
}

/// All refused blocks. An address belongs to the first block that contains it.
const BLOCKS: &[SpecialBlock] = &[
    v4([0, 0, 0, 0], 8, "this network"),
    private(v4([10, 0, 0, 0], 8, "private use")),
    // Alibaba Cloud and Azure serve metadata and credentials of machines at these addresses.
    v4([100, 100, 100, 200], 32, "instance metadata"),
    v4([168, 63, 129, 16], 32, "instance metadata"),
    private(v4([100, 64, 0, 0], 10, "shared address space")),
    private(v4([127, 0, 0, 0], 8, "loopback")),
    // Includes 169.254.169.254, which serves credentials of machines, and 169.254.170.2, which
    // serves those of containers.
    v4([169, 254, 0, 0], 16, "link-local"),
    private(v4([172, 16, 0, 0], 12, "private use")),
    v4([192, 0, 0, 0], 24, "IETF protocol assignments"),
    v4([192, 0, 2, 0], 24, "documentation"),
    v4([192, 88, 99, 0], 24, "6to4 relay anycast"),
    private(v4([192, 168, 0, 0], 16, "private use")),
    v4([198, 18, 0, 0], 15, "benchmarking"),
    v4([198, 51, 100, 0], 24, "documentation"),
    v4([203, 0, 113, 0], 24, "documentation"),
    v4([224, 0, 0, 0], 4, "multicast"),
    v4([255, 255, 255, 255], 32, "limited broadcast"),
    v4([240, 0, 0, 0], 4, "reserved"),
    v6(0, 128, "unspecified"),
    private(v6(1, 128, "loopback")),
    v6(0, 96, "IPv4-compatible"),
    v6(0xffff << 32, 96, "IPv4-mapped"),
    v6(0x0064_ff9b << 96, 96, "NAT64"),
    v6(0x0064_ff9b_0001 << 80, 48, "NAT64, local use"),
    v6(0x0100 << 112, 64, "discard-only"),
    v6(0x2001 << 112, 32, "Teredo"),
    v6(0x2001 << 112, 23, "IETF protocol assignments"),
    v6(0x2001_0db8 << 96, 32, "documentation"),
    v6(0x2002 << 112, 16, "6to4"),
    v6(0x3fff << 112, 20, "documentation"),
    v6(0x5f00 << 112, 16, "segment routing"),
    // AWS serves credentials and time at addresses of this block.
    v6(0xfd00_0ec2 << 96, 32, "instance metadata"),
    // Google Cloud and Oracle Cloud serve metadata and credentials at these addresses.
    v6((0xfd20_00ce << 96) | 0x254, 128, "instance metadata"),
    v6((0xfd00_00c1 << 96) | 0xa9fe_a9fe, 128, "instance metadata"),
    private(v6(0xfc00 << 112, 7, "unique local")),
    v6(0xfe80 << 112, 10, "link-local"),
    v6(0xfec0 << 112, 10, "site-local"),
    v6(0xff00 << 112, 8, "multicast"),
];

/// Checks whether an address may be connected to.
///
/// # Errors
/// The address is not a global unicast address. With `allow_private_peers`, addresses of this
/// machine and of private networks are allowed as well, but not those at which clouds serve
/// credentials, nor those that contain an IPv4 address.
pub(crate) fn check(address: IpAddr, allow_private_peers: bool) -> Result<(), RefusedAddress> {
    match BLOCKS.iter().find(|block| block.contains(address)) {
        Some(block) if block.is_private && allow_private_peers => Ok(()),
        Some(block) => Err(RefusedAddress { address, reason: block.name }),
        None if is_unicast(address) => Ok(()),
        None => Err(RefusedAddress { address, reason: NOT_GLOBAL_UNICAST }),
    }
}

/// Checks whether the address is in the part of its address space from which unicast addresses are
/// allocated. For IPv4, this is all of it except the listed blocks.
fn is_unicast(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(_) => true,
        IpAddr::V6(address) => address.to_bits() >> 125 == 1,
    }
}

impl SpecialBlock {
    fn contains(&self, address: IpAddr) -> bool {
        match (self.network, address) {
            (IpAddr::V4(network), IpAddr::V4(address)) => {
                (network.to_bits() ^ address.to_bits()).leading_zeros() >= self.prefix_length
            }
            (IpAddr::V6(network), IpAddr::V6(address)) => {
                (network.to_bits() ^ address.to_bits()).leading_zeros() >= self.prefix_length
            }
            _ => false,
        }
    }
}

impl fmt::Debug for SpecialBlock {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}/{} ({})", self.network, self.prefix_length, self.name)
    }
}

#[cfg(test)]
mod tests;
