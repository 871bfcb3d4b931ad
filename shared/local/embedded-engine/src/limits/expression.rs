//! A tokenizer for expressions, sufficient to count their parts.

/// Splits an expression into words (including names and placeholders), operators and punctuation.
pub(super) fn tokens(expression: &str) -> Vec<&str> {
    let is_word = |character: char| character.is_alphanumeric() || "_#:.[]".contains(character);
    let mut tokens = Vec::new();
    let mut rest = expression.trim_start();
    while let Some(first) = rest.chars().next() {
        let length = if is_word(first) {
            rest.find(|character| !is_word(character)).unwrap_or(rest.len())
        } else if ["<=", ">=", "<>"].iter().any(|operator| rest.starts_with(operator)) {
            2
        } else {
            first.len_utf8()
        };
        tokens.push(&rest[..length]);
        rest = rest[length..].trim_start();
    }
    tokens
}

/// Counts the operators and functions of an update. `SET a = :x + :y` has one.
pub(super) fn operators_of_update(tokens: &[&str]) -> usize {
    let is_operator = |(at, token): (usize, &&str)| matches!(*token, "+" | "-") || is_function(tokens, at);
    tokens.iter().enumerate().filter(|one| is_operator(*one)).count()
}

/// Counts the comparators, logical operators and functions of a condition. The `AND` of a `BETWEEN`
/// is not counted separately.
pub(super) fn operators_of_condition(tokens: &[&str]) -> usize {
    let mut between = false;
    let mut operators = 0;
    for (at, token) in tokens.iter().enumerate() {
        let is_operator = match token.to_ascii_uppercase().as_str() {
            "AND" => !std::mem::take(&mut between),
            "BETWEEN" => {
                between = true;
                true
            }
            "OR" | "NOT" | "IN" | "=" | "<" | ">" | "<=" | ">=" | "<>" => true,
            _ => is_function(tokens, at),
        };
        operators += usize::from(is_operator);
    }
    operators
}

/// Checks whether a token is the name of a function, followed by a parenthesis.
fn is_function(tokens: &[&str], at: usize) -> bool {
    const FUNCTIONS: [&str; 8] = [
        "attribute_exists",
        "attribute_not_exists",
        "attribute_type",
        "begins_with",
        "contains",
        "size",
        "if_not_exists",
        "list_append",
    ];
    tokens.get(at + 1) == Some(&"(") && FUNCTIONS.contains(&tokens[at])
}

/// Counts the operands of the longest `IN`.
pub(super) fn operands_of_in(tokens: &[&str]) -> usize {
    let lists = tokens.windows(2).enumerate().filter(|(_, pair)| pair[0].eq_ignore_ascii_case("IN") && pair[1] == "(");
    let operands = lists.map(|(at, _)| {
        let list = tokens[at..].iter().take_while(|token| **token != ")");
        list.filter(|token| **token == ",").count() + 1
    });
    operands.max().unwrap_or_default()
}

/// Returns the placeholder of the value that an update sets an attribute to. `is_name` recognizes
/// the attribute's names.
pub(super) fn value_set<'a>(tokens: &[&'a str], is_name: impl Fn(&str) -> bool) -> Option<&'a str> {
    let mut assignments = tokens.windows(3).filter(|three| three[1] == "=" && three[2].starts_with(':'));
    assignments.find(|three| is_name(three[0])).map(|three| three[2])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operators_are_counted() {
        let update = tokens("SET #a = :x + :y, b=if_not_exists(b,:z)-:one ADD n :x REMOVE in, size");
        assert_eq!(operators_of_update(&update), 3);
        let condition = tokens("attribute_exists(PK) AND (a<=:x OR NOT b BETWEEN :x AND :y) AND c IN (:x, :y,:z)");
        assert_eq!(operators_of_condition(&condition), 8);
        assert_eq!(operands_of_in(&condition), 3);
        assert_eq!((operators_of_condition(&tokens("")), operands_of_in(&tokens("a = :b"))), (0, 0));
    }

    #[test]
    fn what_is_set_is_found() {
        let update = tokens("SET a=:x,#k = :y REMOVE b");
        assert_eq!(value_set(&update, |name| name == "#k"), Some(":y"));
        assert_eq!(value_set(&update, |name| name == "b"), None);
    }
}
