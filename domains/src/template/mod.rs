//! The generator of `template.yaml`: the APIs, the functions with their roles and log groups, and
//! their alarms. `make docs` runs it as the program `template`. The rest of the template is written
//! by hand.

mod alarm;
mod api;
mod function;
mod role;
mod text;

use domain::Function;

/// A section of the template between two marks, and its generated text.
type Section = (&'static str, String);

/// Returns the template after replacing the sections that are generated from these functions. Each
/// section is between lines that end with `--- <mark>: begin` and `--- <mark>: end`.
///
/// # Errors
/// Returns the name of a mark that the template lacks.
pub fn generate(template: &str, functions: &[&Function]) -> Result<String, String> {
    sections(functions)
        .into_iter()
        .try_fold(template.to_owned(), |text, (mark, section)| replace(&text, mark, &section))
}

fn sections(functions: &[&Function]) -> [Section; 4] {
    [
        ("generated from the list of all domains by `make docs`: the API", api::paths(functions, true)),
        ("generated from the list of all domains by `make docs`: the API of users", api::paths(functions, false)),
        (
            "generated from the list of all domains by `make docs`: functions",
            functions.iter().map(|one| function::function(one)).collect(),
        ),
        (
            "generated from the list of all domains by `make docs`: alarms",
            functions.iter().map(|one| alarm::alarms(one)).collect(),
        ),
    ]
}

/// Replaces the lines between two marks.
fn replace(text: &str, mark: &str, section: &str) -> Result<String, String> {
    let (begin, end) = (format!("--- {mark}: begin"), format!("--- {mark}: end"));
    let missing = |mark: &str| format!("the template has no line with `{mark}`");
    let (head, rest) = text.split_once(&begin).ok_or_else(|| missing(&begin))?;
    let (first, rest) = rest.split_once('\n').ok_or_else(|| missing(&end))?;
    let tail = rest.find(&end).ok_or_else(|| missing(&end))?;
    let tail_line = rest[..tail].rfind('\n').map_or(0, |at| at + 1);
    Ok(format!("{head}{begin}{first}\n{section}{}", &rest[tail_line..]))
}

#[cfg(test)]
mod tests;
