//! A theme as variables of CSS, for the pages that this product makes.

use tapdeck_term::Theme;

use crate::push_fmt::PushFmt;

/// What pages derive from the colours of a theme: raised surfaces, lines, faint text, and the
/// colours of states.
const DERIVED: &str = "--mid:color-mix(in srgb,var(--fg) 6%,var(--bg));\
    --line:color-mix(in srgb,var(--fg) 16%,var(--bg));\
    --dim:color-mix(in srgb,var(--fg) 68%,var(--bg));\
    --red:var(--c1);--green:var(--c2);--amber:var(--c3);--blue:var(--c4)";

/// The variables of a theme, set on the root of a page: `--fg`, `--bg`, `--cursor`, `--c0` to
/// `--c15`, and those that are derived from them.
pub fn theme_css(theme: &Theme) -> String {
    let scheme = if theme.is_light() { "light" } else { "dark" };
    let mut css = format!(
        ":root{{color-scheme:{scheme};--fg:{};--bg:{};--cursor:{};",
        theme.foreground, theme.background, theme.cursor
    );
    for (i, colour) in theme.ansi.iter().enumerate() {
        css.push_fmt(format_args!("--c{i}:{colour};"));
    }
    css.push_str(DERIVED);
    css.push_str("}\n");
    css
}
