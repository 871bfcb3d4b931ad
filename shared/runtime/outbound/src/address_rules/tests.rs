use proptest::prelude::{any, prop_assert, proptest};

use super::*;

fn address(text: &str) -> IpAddr {
    text.parse().unwrap()
}

fn reason(text: &str) -> Option<&'static str> {
    check(address(text), false).err().map(|refused| refused.reason)
}

/// First and last address of each block, and the reason why it is refused.
const REFUSED: &[(&str, &str, &str)] = &[
    ("0.0.0.0", "0.255.255.255", "this network"),
    ("10.0.0.0", "10.255.255.255", "private use"),
    ("100.64.0.0", "100.127.255.255", "shared address space"),
    ("100.100.100.200", "100.100.100.200", "instance metadata"),
    ("127.0.0.0", "127.255.255.255", "loopback"),
    ("168.63.129.16", "168.63.129.16", "instance metadata"),
    ("169.254.0.0", "169.254.255.255", "link-local"),
    ("169.254.169.254", "169.254.170.2", "link-local"),
    ("172.16.0.0", "172.31.255.255", "private use"),
    ("192.0.0.0", "192.0.0.255", "IETF protocol assignments"),
    ("192.0.2.0", "192.0.2.255", "documentation"),
    ("192.88.99.0", "192.88.99.255", "6to4 relay anycast"),
    ("192.168.0.0", "192.168.255.255", "private use"),
    ("198.18.0.0", "198.19.255.255", "benchmarking"),
    ("198.51.100.0", "198.51.100.255", "documentation"),
    ("203.0.113.0", "203.0.113.255", "documentation"),
    ("224.0.0.0", "239.255.255.255", "multicast"),
    ("240.0.0.0", "255.255.255.254", "reserved"),
    ("255.255.255.255", "255.255.255.255", "limited broadcast"),
    ("::", "::", "unspecified"),
    ("::1", "::1", "loopback"),
    ("::2", "::ffff:ffff", "IPv4-compatible"),
    ("::ffff:0:0", "::ffff:ffff:ffff", "IPv4-mapped"),
    ("::ffff:8.8.8.8", "::ffff:169.254.169.254", "IPv4-mapped"),
    ("::ffff:0:0:0", "::ffff:0:ffff:ffff", "not global unicast"),
    ("64:ff9b::", "64:ff9b::ffff:ffff", "NAT64"),
    ("64:ff9b:1::", "64:ff9b:1:ffff:ffff:ffff:ffff:ffff", "NAT64, local use"),
    ("100::", "100::ffff:ffff:ffff:ffff", "discard-only"),
    ("2001::", "2001:0:ffff:ffff:ffff:ffff:ffff:ffff", "Teredo"),
    ("2001:1::", "2001:1ff:ffff:ffff:ffff:ffff:ffff:ffff", "IETF protocol assignments"),
    ("2001:2::", "2001:2:0:ffff:ffff:ffff:ffff:ffff", "IETF protocol assignments"),
    ("2001:10::", "2001:2f:ffff:ffff:ffff:ffff:ffff:ffff", "IETF protocol assignments"),
    ("2001:db8::", "2001:db8:ffff:ffff:ffff:ffff:ffff:ffff", "documentation"),
    ("2002::", "2002:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "6to4"),
    ("3fff::", "3fff:fff:ffff:ffff:ffff:ffff:ffff:ffff", "documentation"),
    ("4000::", "4000::1", "not global unicast"),
    ("5f00::", "5f00:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "segment routing"),
    ("fc00::", "fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "unique local"),
    ("fd00:ec2::", "fd00:ec2:ffff:ffff:ffff:ffff:ffff:ffff", "instance metadata"),
    ("fd00:ec2::254", "fd00:ec2::254", "instance metadata"),
    ("fd20:ce::254", "fd20:ce::254", "instance metadata"),
    ("fd00:c1::a9fe:a9fe", "fd00:c1::a9fe:a9fe", "instance metadata"),
    ("fe80::", "febf:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "link-local"),
    ("fec0::", "feff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "site-local"),
    ("ff00::", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "multicast"),
];

/// Allowed addresses: the neighbors of refused blocks, and addresses of public servers.
const ALLOWED: &[&str] = &[
    "1.0.0.0",
    "8.8.8.8",
    "9.255.255.255",
    "11.0.0.0",
    "100.63.255.255",
    "100.128.0.0",
    "126.255.255.255",
    "128.0.0.0",
    "169.253.255.255",
    "169.255.0.0",
    "172.15.255.255",
    "172.32.0.0",
    "191.255.255.255",
    "192.0.1.0",
    "192.0.3.0",
    "192.88.98.255",
    "192.88.100.0",
    "192.167.255.255",
    "192.169.0.0",
    "198.17.255.255",
    "198.20.0.0",
    "198.51.99.255",
    "198.51.101.0",
    "203.0.112.255",
    "203.0.114.0",
    "223.255.255.255",
    "2000::1",
    "2001:200::",
    "2001:4860:4860::8888",
    "2001:db7:ffff:ffff:ffff:ffff:ffff:ffff",
    "2001:db9::",
    "2003::",
    "2606:4700::1111",
    "3ffe:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
    "3fff:1000::",
    "3fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
];

#[test]
fn every_special_block_is_refused() {
    for (first, last, expected) in REFUSED {
        for text in [first, last] {
            assert_eq!(reason(text), Some(*expected), "{text}");
        }
    }
    let tested = |block: &SpecialBlock| REFUSED.iter().any(|(_, _, name)| *name == block.name);
    assert!(BLOCKS.iter().all(tested));
}

#[test]
fn every_block_is_given_by_its_first_address() {
    for block in BLOCKS {
        let (bits, length) = match block.network {
            IpAddr::V4(network) => (u128::from(network.to_bits()) << 96, block.prefix_length),
            IpAddr::V6(network) => (network.to_bits(), block.prefix_length),
        };
        assert!(bits.trailing_zeros() >= 128 - length, "{block:?}");
    }
}

#[test]
fn public_addresses_are_allowed() {
    for text in ALLOWED {
        assert_eq!(reason(text), None, "{text}");
    }
}

/// Even if private peers are allowed, addresses that serve credentials of machines are refused.
#[test]
fn private_peers_do_not_include_credentials_of_machines() {
    for text in ["10.0.0.1", "127.0.0.1", "172.16.0.1", "192.168.1.1", "100.64.0.1", "::1", "fd00::1", "fc00::1"] {
        assert_eq!(check(address(text), true), Ok(()), "{text}");
        assert!(check(address(text), false).is_err(), "{text}");
    }
    for text in [
        "169.254.169.254",
        "169.254.170.2",
        "100.100.100.200",
        "168.63.129.16",
        "fd00:ec2::254",
        "fd20:ce::254",
        "fd00:c1::a9fe:a9fe",
        "fe80::1",
        "0.0.0.0",
        "255.255.255.255",
        "224.0.0.1",
        "::",
        "::ffff:127.0.0.1",
        "::ffff:169.254.169.254",
        "::127.0.0.1",
        "64:ff9b::a9fe:a9fe",
        "2002:a9fe:a9fe::",
        "ff02::1",
    ] {
        assert!(check(address(text), true).is_err(), "{text}");
    }
}

proptest! {
    /// No allowed address is special according to the stable methods of the standard library.
    #[test]
    fn allowed_ipv4_addresses_are_public(bits in any::<u32>()) {
        let address = Ipv4Addr::from_bits(bits);
        if check(IpAddr::V4(address), false).is_ok() {
            prop_assert!(!address.is_private() && !address.is_loopback() && !address.is_link_local());
            prop_assert!(!address.is_multicast() && !address.is_broadcast() && !address.is_documentation());
            prop_assert!(!address.is_unspecified());
        }
    }

    #[test]
    fn allowed_ipv6_addresses_are_global_unicast(bits in any::<u128>()) {
        // A random address rarely begins with the bits of global unicast addresses, so a second
        // address with these bits is checked as well.
        for bits in [bits, bits >> 3 | 1 << 125] {
            let address = Ipv6Addr::from_bits(bits);
            if check(IpAddr::V6(address), false).is_ok() {
                prop_assert!(address.segments()[0] & 0xe000 == 0x2000 && address.to_ipv4().is_none());
                prop_assert!(!address.is_unique_local() && !address.is_unicast_link_local());
            }
        }
    }

    /// IPv6 addresses that contain an IPv4 address are refused, whatever the IPv4 address is. The
    /// exception is `::1`, this machine, which is allowed because the test allows private peers.
    #[test]
    fn embedded_ipv4_addresses_are_refused(bits in any::<u32>(), rest in any::<u128>()) {
        let embedded = u128::from(bits);
        for bits in [
            embedded,
            0xffff << 32 | embedded,
            0x0064_ff9b << 96 | embedded,
            0x0064_ff9b_0001 << 80 | embedded,
            0x2002 << 112 | embedded << 80 | rest >> 48,
            0x2001 << 112 | rest >> 64 << 32 | embedded,
        ] {
            prop_assert!(check(IpAddr::V6(Ipv6Addr::from_bits(bits)), true).is_err() || bits == 1);
        }
    }
}
