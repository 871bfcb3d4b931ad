//! Texts that are close to others.

/// Returns the name that was probably meant: the closest one, if it differs in a few letters only.
pub(super) fn closest<'a>(written: &str, known: &[&'a str]) -> Option<&'a str> {
    let with_distance = known.iter().map(|name| (distance(written, name), *name));
    let (distance, name) = with_distance.min_by_key(|(distance, _)| *distance)?;
    (distance <= 1 + written.chars().count() / 4).then_some(name)
}

/// Returns the number of letters to insert, delete or replace (Levenshtein distance).
fn distance(left: &str, right: &str) -> usize {
    let right: Vec<char> = right.chars().collect();
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (number, letter) in left.chars().enumerate() {
        let mut next = vec![number + 1];
        for ((other, above), diagonal) in right.iter().zip(row.iter().skip(1)).zip(&row) {
            let before = next.last().copied().unwrap_or_default();
            let replaced = diagonal + usize::from(letter != *other);
            next.push(replaced.min(above + 1).min(before + 1));
        }
        row = next;
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_typo_finds_the_name_that_was_meant() {
        let known = ["issuer", "name", "client_id"];
        assert_eq!(closest("isuer", &known), Some("issuer"));
        assert_eq!(closest("clientid", &known), Some("client_id"));
        assert_eq!(closest("tenant", &known), None);
        assert_eq!((distance("", "abc"), distance("abc", ""), distance("kitten", "sitting")), (3, 3, 3));
    }
}
