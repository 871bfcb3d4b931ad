//! Search for a part of a pattern between two `%`, if the part contains `_`.
//!
//! The algorithm is Shift-And. It maintains one bit for each character of the part. The bit is set
//! if the text read so far ends with the beginning of the part up to that character. Each character
//! of the text takes a shift and a mask per 64 characters of the part. Skipping ahead, as in a
//! search for plain text, is not possible because of `_`. A comparison at every position would take
//! time proportional to the product of both lengths.

/// A part of a pattern that contains `_`, in blocks of 64 characters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ShiftAndPattern {
    blocks: Vec<ShiftAndBlock>,
    /// The bit of the part's last character, within the last block.
    last: u64,
}

/// Up to 64 consecutive characters of the part. For each character, a bit mask contains the
/// positions in the block that it matches.
#[derive(Clone, Debug, PartialEq, Eq)]
struct ShiftAndBlock {
    ascii: [u64; 128],
    /// The masks of characters outside ASCII, sorted by character.
    others: Vec<(char, u64)>,
    /// The positions that match any character.
    any: u64,
}

impl ShiftAndBlock {
    fn new(characters: &[char]) -> Self {
        let mut block = Self { ascii: [0; 128], others: Vec::new(), any: 0 };
        for (place, &character) in characters.iter().enumerate() {
            let bit = 1 << place;
            match block.ascii.get_mut(character as usize) {
                _ if character == '_' => block.any |= bit,
                Some(places) => *places |= bit,
                None => match block.others.binary_search_by_key(&character, |(other, _)| *other) {
                    Ok(found) => block.others[found].1 |= bit,
                    Err(free) => block.others.insert(free, (character, bit)),
                },
            }
        }
        block
    }

    fn places(&self, character: char) -> u64 {
        let places = self.ascii.get(character as usize).copied().unwrap_or_else(|| {
            let found = self.others.binary_search_by_key(&character, |(other, _)| *other);
            found.map_or(0, |found| self.others[found].1)
        });
        places | self.any
    }
}

impl ShiftAndPattern {
    pub(super) fn new(stretch: &str) -> Self {
        let characters: Vec<_> = stretch.chars().collect();
        let blocks: Vec<_> = characters.chunks(64).map(ShiftAndBlock::new).collect();
        let last = (characters.len().max(1) - 1) % 64;
        Self { last: 1 << last, blocks }
    }

    /// Returns the position in a text where the first match of this part ends.
    pub(super) fn first_end(&self, text: &str) -> Option<usize> {
        let mut states = vec![0_u64; self.blocks.len()];
        // No bit is set in the blocks from this index on.
        let mut reached = 1;
        for (at, found) in text.char_indices() {
            if reached < states.len() && states[reached - 1] >> 63 == 1 {
                reached += 1;
            }
            // A match may begin at every character.
            let mut carry = 1;
            for (state, block) in states[..reached].iter_mut().zip(&self.blocks) {
                let shifted = *state << 1 | carry;
                carry = *state >> 63;
                *state = shifted & block.places(found);
            }
            if reached == states.len() && states[reached - 1] & self.last != 0 {
                return Some(at + found.len_utf8());
            }
            while reached > 1 && states[reached - 1] == 0 {
                reached -= 1;
            }
        }
        None
    }
}
