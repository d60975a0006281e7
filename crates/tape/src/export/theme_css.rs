//! A theme as variables of CSS, for the pages that this product makes.

use tapdeck_term::{Rgb, Theme};

/// The variables, with the names of colours in braces in the place of their values. What pages
/// derive from the colours follows: raised surfaces, lines, faint text, and the colours of states.
const TEMPLATE: &str = include_str!("theme.css");

/// The variables of a theme, set on the root of a page: its text, background and cursor, its ANSI
/// colours by number, and those that are derived from them.
pub fn theme_css(theme: &Theme) -> String {
    let scheme = if theme.is_light() { "light" } else { "dark" };
    let mut css = TEMPLATE.replace("{scheme}", scheme);
    let mut set = |name: &str, colour: Rgb| css = css.replace(&format!("{{{name}}}"), &colour.to_string());
    set("fg", theme.foreground);
    set("bg", theme.background);
    set("cursor", theme.cursor);
    for (i, colour) in theme.ansi.into_iter().enumerate() {
        set(&format!("c{i}"), colour);
    }
    css
}
