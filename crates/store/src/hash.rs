//! The hash that decides where a task lives. Its values are stored, so it never changes.
//!
//! FNV-1a over the bytes, finished with the MurmurHash3 64-bit mixer so that the low bits, which
//! pick partitions and shards, depend on every byte. It is not meant to resist an adversary: a
//! client that aims all its keys at one partition only slows itself.

/// Hashes the parts in order; each part is closed by a byte that cannot occur in UTF-8, so
/// `["ab", "c"]` and `["a", "bc"]` differ.
pub fn stable_hash(parts: &[&[u8]]) -> u64 {
    let mut h: u64 = 0xcbf2_9ce4_8422_2325;
    for part in parts {
        for &byte in *part {
            h = (h ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
        h = (h ^ 0xff).wrapping_mul(0x0000_0100_0000_01b3);
    }
    h ^= h >> 33;
    h = h.wrapping_mul(0xff51_afd7_ed55_8ccd);
    h ^= h >> 33;
    h = h.wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    h ^ (h >> 33)
}

/// As [`stable_hash`], never 0, so that 0 can stand for "none".
pub fn stable_hash_nonzero(parts: &[&[u8]]) -> u64 {
    stable_hash(parts).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_pinned_because_they_are_stored() {
        assert_eq!(stable_hash(&[]), 0xefd0_1f60_ba99_2926);
        assert_eq!(stable_hash(&[b"default", b"default", b"0"]), 0x4c49_f477_7370_aae7);
        assert_ne!(stable_hash(&[b"ab", b"c"]), stable_hash(&[b"a", b"bc"]));
    }
}
