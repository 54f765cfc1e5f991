//! Which addresses a request may go to when private ones are refused.
//!
//! What always holds: an IPv6 address that carries an IPv4 address (mapped, compatible, NAT64,
//! 6to4, Teredo) is judged by the carried one too, so no spelling of a private address passes.
//! What is deliberately absent: names. A name is judged by what it resolves to, at the moment of
//! connecting.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// What an address is, as far as refusing it goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddressClass {
    /// Reachable over the Internet.
    Public,
    /// The machine itself.
    Loopback,
    /// A private network.
    Private,
    /// The link, which is where most metadata services of clouds are.
    LinkLocal,
    /// `0.0.0.0/8` or `::`, which reach the machine itself.
    Unspecified,
    /// A provider's shared range (carrier-grade NAT).
    Shared,
    /// A metadata service with an otherwise public address.
    Metadata,
    /// Multicast or broadcast.
    Multicast,
    /// Set apart for other uses (benchmarks, documentation, protocols, the future).
    Reserved,
}

impl AddressClass {
    /// Whether requests are refused when private targets are not allowed.
    pub fn is_refused(self) -> bool {
        self != Self::Public
    }

    /// As a word in an error: "a … address".
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Public => "public",
            Self::Loopback => "loopback",
            Self::Private => "private",
            Self::LinkLocal => "link-local",
            Self::Unspecified => "unspecified",
            Self::Shared => "carrier-grade NAT",
            Self::Metadata => "cloud metadata",
            Self::Multicast => "multicast",
            Self::Reserved => "reserved",
        }
    }
}

/// What `ip` is.
pub fn classify(ip: IpAddr) -> AddressClass {
    match ip {
        IpAddr::V4(v4) => classify_v4(v4),
        IpAddr::V6(v6) => classify_v6(v6),
    }
}

fn classify_v4(ip: Ipv4Addr) -> AddressClass {
    match ip.octets() {
        [0, ..] => AddressClass::Unspecified,
        [127, ..] => AddressClass::Loopback,
        [10, ..] | [172, 16..=31, ..] | [192, 168, ..] => AddressClass::Private,
        [169, 254, ..] => AddressClass::LinkLocal,
        [100, 64..=127, ..] => AddressClass::Shared,
        // Azure's wire server has a public address.
        [168, 63, 129, 16] => AddressClass::Metadata,
        [224..=239, ..] | [255, 255, 255, 255] => AddressClass::Multicast,
        [192, 0, 0, _] | [192, 0, 2, _] | [192, 88, 99, _] | [198, 18..=19, ..] => {
            AddressClass::Reserved
        }
        [198, 51, 100, _] | [203, 0, 113, _] | [240..=255, ..] => AddressClass::Reserved,
        _ => AddressClass::Public,
    }
}

fn classify_v6(ip: Ipv6Addr) -> AddressClass {
    if ip == Ipv6Addr::UNSPECIFIED {
        return AddressClass::Unspecified;
    }
    if ip == Ipv6Addr::LOCALHOST {
        return AddressClass::Loopback;
    }
    let s = ip.segments();
    match s {
        // Mapped, translated and the deprecated compatible form.
        [0, 0, 0, 0, 0, 0xffff, hi, lo]
        | [0, 0, 0, 0, 0xffff, 0, hi, lo]
        | [0, 0, 0, 0, 0, 0, hi, lo]
        | [0x64, 0xff9b, 0, 0, 0, 0, hi, lo] => classify_v4(joined(hi, lo)),
        [0x64, 0xff9b, 1, ..] => AddressClass::Private,
        [0x2002, hi, lo, ..] => classify_v4(joined(hi, lo)),
        // Teredo: the server, and the client with its bits inverted.
        [0x2001, 0, server_hi, server_lo, _, _, hi, lo] => {
            match classify_v4(joined(server_hi, server_lo)) {
                AddressClass::Public => classify_v4(joined(!hi, !lo)),
                other => other,
            }
        }
        [0xfe80..=0xfebf, ..] => AddressClass::LinkLocal,
        [0xfec0..=0xfeff, ..] | [0xfc00..=0xfdff, ..] => AddressClass::Private,
        [0xff00..=0xffff, ..] => AddressClass::Multicast,
        [0x2001, 0xdb8, ..] | [0x3fff, 0..=0x0fff, ..] | [0x100, ..] => AddressClass::Reserved,
        // Other protocol assignments in 2001::/23.
        [0x2001, 1..=0x1ff, ..] => AddressClass::Reserved,
        // Only this eighth is handed out for the Internet.
        [0x2000..=0x3fff, ..] => AddressClass::Public,
        _ => AddressClass::Reserved,
    }
}

fn joined(hi: u16, lo: u16) -> Ipv4Addr {
    Ipv4Addr::from((u32::from(hi) << 16) | u32::from(lo))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn table() {
        use AddressClass::*;
        let cases = [
            ("8.8.8.8", Public),
            ("1.1.1.1", Public),
            ("9.255.255.255", Public),
            ("11.0.0.0", Public),
            ("100.63.255.255", Public),
            ("100.128.0.0", Public),
            ("172.15.255.255", Public),
            ("172.32.0.0", Public),
            ("192.167.255.255", Public),
            ("192.169.0.0", Public),
            ("169.253.255.255", Public),
            ("168.63.129.17", Public),
            ("0.0.0.0", Unspecified),
            ("0.1.2.3", Unspecified),
            ("10.0.0.1", Private),
            ("127.0.0.1", Loopback),
            ("127.255.255.254", Loopback),
            ("172.16.0.1", Private),
            ("172.31.255.255", Private),
            ("192.168.0.1", Private),
            ("169.254.0.1", LinkLocal),
            ("169.254.169.254", LinkLocal),
            ("169.254.170.2", LinkLocal),
            ("100.64.0.1", Shared),
            ("100.100.100.200", Shared),
            ("100.127.255.255", Shared),
            ("168.63.129.16", Metadata),
            ("192.0.0.192", Reserved),
            ("198.18.0.1", Reserved),
            ("198.20.0.0", Public),
            ("203.0.113.7", Reserved),
            ("224.0.0.1", Multicast),
            ("240.0.0.1", Reserved),
            ("255.255.255.255", Multicast),
            ("::", Unspecified),
            ("::1", Loopback),
            ("::2", Unspecified),
            ("::7f00:1", Loopback),
            ("2606:4700:4700::1111", Public),
            ("2001:4860:4860::8888", Public),
            ("fe80::1", LinkLocal),
            ("febf::1", LinkLocal),
            ("fec0::1", Private),
            ("fc00::1", Private),
            ("fd00:ec2::254", Private),
            ("ff02::1", Multicast),
            ("::ffff:127.0.0.1", Loopback),
            ("::ffff:169.254.169.254", LinkLocal),
            ("::ffff:10.0.0.1", Private),
            ("::ffff:8.8.8.8", Public),
            ("::ffff:0:192.168.1.1", Private),
            ("64:ff9b::10.0.0.1", Private),
            ("64:ff9b::8.8.8.8", Public),
            ("64:ff9b:1::1", Private),
            ("2002:7f00:1::", Loopback),
            ("2002:a9fe:a9fe::1", LinkLocal),
            ("2002:808:808::1", Public),
            ("2001:0:808:808:0:0:f5ff:fffe", Private),
            ("2001:db8::1", Reserved),
            ("100::1", Reserved),
            ("5f00::1", Reserved),
        ];
        for (text, expected) in cases {
            let ip: IpAddr = text.parse().unwrap();
            assert_eq!(classify(ip), expected, "{text}");
            assert_eq!(classify(ip).is_refused(), expected != Public, "{text}");
        }
    }

    proptest! {
        #[test]
        fn a_carried_address_is_judged_as_itself(bits: u32) {
            let v4 = Ipv4Addr::from(bits);
            let class = classify(v4.into());
            prop_assert_eq!(classify(v4.to_ipv6_mapped().into()), class);
            let [hi, lo] = [(bits >> 16) as u16, bits as u16];
            prop_assert_eq!(classify(Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, hi, lo).into()), class);
            prop_assert_eq!(classify(Ipv6Addr::new(0x2002, hi, lo, 0, 0, 0, 0, 1).into()), class);
        }

        #[test]
        fn agrees_with_std(bits: u32) {
            let v4 = Ipv4Addr::from(bits);
            if v4.is_private() || v4.is_loopback() || v4.is_link_local() || v4.is_unspecified()
                || v4.is_broadcast() || v4.is_multicast() || v4.is_documentation() {
                prop_assert!(classify(v4.into()).is_refused());
            }
        }
    }
}
