//! A stable hash, for what must come out the same on every machine and in every version: the
//! minute a `~` resolves to, and the jitter of an occurrence.
//!
//! FNV-1a over the bytes, then the SplitMix64 finalizer to spread the low bits. Changing it
//! would move people's schedules, so a test pins its values.

/// Hash of a name and a number beside it.
pub(crate) fn stable(name: &str, number: u64) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for byte in name.bytes() {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
    }
    mix(hash ^ mix(number))
}

/// The SplitMix64 finalizer.
pub(crate) fn mix(value: u64) -> u64 {
    let mut z = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_never_change() {
        assert_eq!(mix(0), 0xe220_a839_7b1d_cdaf);
        assert_eq!(stable("daily-report", 0), 0xfc2c_11ab_c1a4_760e);
        assert_eq!(stable("", 7), 0x9559_efa3_0f5d_9071);
    }
}
