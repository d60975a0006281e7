//! What is wrong with a scenario's text, in the words of a scenario.

/// The line of the first tab that indents something from this line on.
pub(super) fn tab(text: &str, from: u64) -> Option<u64> {
    let mut lines = (1..).zip(text.lines()).skip_while(|(line, _)| *line < from);
    lines.find(|(_, l)| l.trim_start_matches(' ').starts_with('\t')).map(|(line, _)| line)
}

/// What is wanted, from serde's name of it.
pub(super) fn wanted(what: &str) -> String {
    match what {
        _ if what.contains("sequence") => "a list is wanted here, such as [a, b]".into(),
        "one or a list" | "a plain value or a map" => format!("{what} is wanted here"),
        _ if what.contains("map") || what.starts_with("struct") => {
            "keys are wanted here, such as {contains: text}".into()
        }
        _ if what.contains("bool") => "write true or false".into(),
        "a string" | "str" => "a text is wanted here".into(),
        "u8" | "u16" | "u32" | "u64" | "usize" => "a number is wanted here, 0 or more".into(),
        "i32" | "i64" => "a whole number is wanted here".into(),
        "f64" | "f32" => "a number is wanted here".into(),
        _ => "a value of another kind is wanted here".into(),
    }
}
