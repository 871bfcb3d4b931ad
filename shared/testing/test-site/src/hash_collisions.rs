//! Texts with equal 128-bit FNV-1a hashes, found by lattice reduction. Tests check that keys of
//! these texts differ nevertheless.

/// Returns two names that are too long for a key, have the same beginning, and have the same FNV
/// hash.
pub fn names() -> [String; 2] {
    let ends = ["RgCH35uRqU-2g6IY0.a9183e3pVq2Wk0-XJb", "eaDy86oRSJ5YSVBf.cxfy--d3IWJ0VYW5xFk"];
    ends.map(|end| format!("{}{end}", "é".repeat(400)))
}

/// Two names of datasets with the same digest. If each text is prefixed with its length, as
/// `WideDigest::of` does, they have the same FNV hash.
pub const COLLIDING_DATASETS: [&str; 2] =
    ["SsRxC.C46k-3UD7C.mF5U447vRYT.Sr-1S3_", "j53I835xN45.qLFz8.qhM38zviF-4Tpl5u5T"];

/// Two names of datasets, with the experiments 1 and 2 that they belong to. If the experiment, the
/// name and the digest are prefixed with their lengths and joined, both results have the same FNV
/// hash.
pub const COLLIDING_DATASETS_OF_TWO_EXPERIMENTS: [(&str, &str); 2] =
    [("1", "i2-5019LN50f-.6zK_Li_.lQ-z-y10.8cis5RYo4RkYy"), ("2", "75-M120Vv-P34Z4-FA4m.s.j-b-b1Q58n81Ksxh4RkYy")];

#[cfg(test)]
mod tests {
    use key_schema::{Name, Segment, WideDigest, fnv1a_128};

    use super::*;

    /// Returns the texts prefixed with their lengths, as [`WideDigest::of`] hashes them.
    fn with_lengths(texts: &[&str]) -> Vec<u8> {
        texts.iter().flat_map(|text| [&(text.len() as u64).to_le_bytes(), text.as_bytes()].concat()).collect()
    }

    #[test]
    fn keys_tell_apart_what_fnv_does_not() {
        let [one, other] = names();
        assert_eq!(fnv1a_128(one.as_bytes()), fnv1a_128(other.as_bytes()));
        let [one, other] = [one, other].map(Name);
        assert_eq!(one.text()[..660], other.text()[..660]);
        assert_ne!(one.text(), other.text());
        let [one, other] = COLLIDING_DATASETS;
        assert_eq!(fnv1a_128(&with_lengths(&[one, "d"])), fnv1a_128(&with_lengths(&[other, "d"])));
        assert_ne!(WideDigest::of(&[one, "d"]), WideDigest::of(&[other, "d"]));
        let [one, other] = COLLIDING_DATASETS_OF_TWO_EXPERIMENTS.map(|(experiment, name)| [experiment, name, "d"]);
        assert_eq!(fnv1a_128(&with_lengths(&one)), fnv1a_128(&with_lengths(&other)));
        assert_ne!(WideDigest::of(&one), WideDigest::of(&other));
    }
}
