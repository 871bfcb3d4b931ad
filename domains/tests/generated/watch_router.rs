//! Checks the router of `cargo lambda watch` in `Cargo.toml`.

use domain::Function;
use domains::functions;

use crate::check_between;

#[test]
fn watch_sends_each_path_to_the_function_that_serves_it() {
    let line = |function: &Function, path: &str| format!("\"{path}\" = \"{}\"\n", function.name);
    let lines = functions().flat_map(|function| function.paths.iter().map(move |path| line(function, path)));
    let mark = "--- generated from the list of all domains by `make docs`: ";
    check_between("Cargo.toml", &format!("{mark}begin"), &format!("{mark}end"), &lines.collect::<String>());
}
