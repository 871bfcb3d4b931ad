use proptest::prelude::{any, prop_assert, proptest};

use super::*;

const STRICT: OutboundPolicy = OutboundPolicy { schemes: Schemes::Https, allow_private_peers: false };
const RELAXED: OutboundPolicy = OutboundPolicy { schemes: Schemes::HttpsAndHttp, allow_private_peers: true };

fn refusal(text: &str) -> UrlError {
    OutboundUrl::parse(text, STRICT).expect_err(text)
}

#[test]
fn public_urls_are_parsed() {
    for (text, authority, target, port) in [
        ("https://example.com", "example.com", "/", 443),
        ("HTTPS://EXAMPLE.com:443/a?b=c#d", "example.com", "/a?b=c", 443),
        ("https://example.com:8443/a b", "example.com:8443", "/a%20b", 8443),
        ("https://8.8.8.8/", "8.8.8.8", "/", 443),
        ("https://[2606:4700::1111]:1/", "[2606:4700::1111]:1", "/", 1),
        ("https://bücher.example/", "xn--bcher-kva.example", "/", 443),
        ("https://example.com/?q", "example.com", "/?q", 443),
    ] {
        let url = OutboundUrl::parse(text, STRICT).unwrap();
        assert_eq!((url.authority(), url.target(), url.port()), (authority, target, port), "{text}");
        assert!(url.is_tls());
    }
}

#[test]
fn other_schemes_are_refused() {
    for (text, expected) in [
        ("http://example.com", "http"),
        ("ftp://example.com", "ftp"),
        ("file:///etc/passwd", "file"),
        ("gopher://example.com", "gopher"),
        ("data:text/plain,x", "data"),
        ("javascript:alert(1)", "javascript"),
        ("unix:/run/docker.sock", "unix"),
        ("example.com", ""),
        ("//example.com", ""),
        ("", ""),
    ] {
        assert_eq!(refusal(text), UrlError::Scheme { scheme: expected.to_owned() }, "{text}");
    }
    assert!(OutboundUrl::parse("http://example.com", RELAXED).is_ok());
    assert!(OutboundUrl::parse("ftp://example.com", RELAXED).is_err());
}

#[test]
fn credentials_are_refused() {
    for text in ["https://user@example.com", "https://user:pw@example.com", "https://:pw@example.com"] {
        assert_eq!(refusal(text), UrlError::Credentials, "{text}");
    }
    // Browsers read the first two URLs in this way: the text before `\` or `#` is the host. In the
    // third one, `example.com` is a user name.
    let url = OutboundUrl::parse("https://example.com\\@127.0.0.1/", STRICT).unwrap();
    assert_eq!(url.host(), "example.com");
    assert_eq!(OutboundUrl::parse("https://example.com#@127.0.0.1/", STRICT).unwrap().host(), "example.com");
    assert_eq!(refusal("https://example.com:x@127.0.0.1/"), UrlError::Credentials);
}

#[test]
fn a_url_without_a_host_is_refused() {
    for text in ["https://", "https:", "https:///", "https://:443/", "https://?x"] {
        assert_eq!(refusal(text), UrlError::NoHost, "{text}");
    }
    assert!(matches!(refusal("https://exa mple.com"), UrlError::Malformed(_)));
    assert!(matches!(refusal("https://example.com:99999"), UrlError::Malformed(_)));
    assert!(matches!(refusal("https://[fe80::1%25eth0]/"), UrlError::Malformed(_)));
}

#[test]
fn long_urls_are_refused() {
    let text = |length: usize| format!("https://example.com/{}", "a".repeat(length - 20));
    assert!(OutboundUrl::parse(&text(MAX_URL_BYTES), STRICT).is_ok());
    assert_eq!(refusal(&text(MAX_URL_BYTES + 1)), UrlError::TooLong);
}

/// However an address is spelled, it is checked like any other address.
#[test]
fn addresses_are_refused_in_every_spelling() {
    for (expected, spellings) in [
        (
            "127.0.0.1",
            &[
                "127.0.0.1",
                "127.1",
                "127.0.1",
                "2130706433",
                "0x7f000001",
                "0x7f.1",
                "0177.0.0.1",
                "017700000001",
                "0x7F.0x0.0x0.0x1",
                "127.0.0.1.",
                "00000177.1",
                "127.0x0.0.01",
                "%31%32%37.0.0.1",
                "１２７.0.0.1",
                "①②⑦.⓪.⓪.①",
                "127。0。0。1",
                "127.0.0\t.1",
            ][..],
        ),
        (
            "169.254.169.254",
            &["169.254.169.254", "2852039166", "0xa9fea9fe", "0251.0376.0251.0376", "169.254.43518", "0xa9.16689662"],
        ),
        ("10.0.0.1", &["10.0.0.1", "10.1", "012.1", "167772161"]),
        ("0.0.0.0", &["0", "0.0.0.0", "0x0", "00", "0.0"]),
        ("255.255.255.255", &["4294967295", "0xffffffff"]),
        ("::1", &["[::1]", "[0:0:0:0:0:0:0:1]", "[0000::0001]", "[::0.0.0.1]"]),
        ("::ffff:127.0.0.1", &["[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[0:0:0:0:0:FFFF:7F00:0001]"]),
        ("::127.0.0.1", &["[::127.0.0.1]", "[::7f00:1]"]),
        ("64:ff9b::a9fe:a9fe", &["[64:ff9b::169.254.169.254]", "[0064:FF9B::a9fe:a9fe]"]),
        ("2002:7f00:1::", &["[2002:7f00:1::]", "[2002:7f00:0001:0:0:0:0:0]"]),
        ("fe80::1", &["[fe80::1]", "[FE80:0::1]"]),
        ("fd00:ec2::254", &["[fd00:ec2::254]", "[FD00:0EC2::0254]"]),
    ] {
        for spelling in spellings {
            for text in
                [format!("https://{spelling}/"), format!("https://{spelling}:8443"), format!("HTTPS:\\\\{spelling}")]
            {
                let UrlError::Address(refused) = refusal(&text) else { panic!("{text} is no address") };
                assert_eq!(refused.address, expected.parse::<IpAddr>().unwrap(), "{text}");
            }
        }
    }
}

#[test]
fn private_peers_are_an_option() {
    assert!(OutboundUrl::parse("http://127.1:5000/hook", RELAXED).is_ok());
    assert!(OutboundUrl::parse("https://[::1]/", RELAXED).is_ok());
    assert!(matches!(OutboundUrl::parse("http://169.254.169.254/", RELAXED), Err(UrlError::Address(_))));
    // A URL that was parsed with one policy can be checked against another.
    let url = OutboundUrl::parse("http://127.0.0.1/", RELAXED).unwrap();
    assert_eq!(url.check(STRICT), Err(UrlError::Scheme { scheme: "http".to_owned() }));
}

#[test]
fn nothing_that_is_printed_contains_the_path() {
    let url = OutboundUrl::parse("https://example.com/T0/secret?token=secret", STRICT).unwrap();
    assert_eq!(format!("{url:?}"), "OutboundUrl(https://example.com/…)");
    for text in [
        "http://example.com/secret",
        "https://u:secret@example.com/secret",
        "https://127.0.0.1/secret",
        "https://a b/secret",
    ] {
        let error = refusal(text);
        assert!(!format!("{error} {error:?}").contains("secret"), "{error}");
    }
}

proptest! {
    #[test]
    fn arbitrary_text_is_parsed_or_refused(text in any::<String>(), begin in "(https://)?") {
        if let Ok(url) = OutboundUrl::parse(&format!("{begin}{text}"), STRICT) {
            prop_assert!(url.is_tls() && !url.host().is_empty() && url.target().starts_with('/'));
            prop_assert!(url.literal().is_none_or(|address| check(address, false).is_ok()));
            // Parsing the normalized URL again results in the same host.
            prop_assert!(OutboundUrl::parse(url.as_str(), STRICT).is_ok_and(|again| again.host() == url.host()));
        }
    }

    #[test]
    fn a_number_is_an_address(number in any::<u32>()) {
        let parsed = OutboundUrl::parse(&format!("https://{number}/"), RELAXED);
        let address = IpAddr::V4(number.into());
        match parsed {
            Ok(url) => prop_assert!(url.literal() == Some(address)),
            Err(error) => prop_assert!(matches!(error, UrlError::Address(refused) if refused.address == address)),
        }
    }
}
