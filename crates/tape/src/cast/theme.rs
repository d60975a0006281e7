//! The colours of a terminal as the header of an asciicast has them: `{"fg": "#rrggbb", "bg":
//! "#rrggbb", "palette": "#rrggbb:…"}`, with 8 or 16 colours in the palette.

use serde_json::{Value, json};
use tapdeck_term::{Rgb, Theme};

use crate::JsonValue;
use crate::event::Header;

/// The theme that a recording carries. `None` if it has none, or one that cannot be read.
pub fn theme_of(header: &Header) -> Option<Theme> {
    let theme = &header.theme.as_ref()?.0;
    let text = |key: &str| theme.get(key).and_then(Value::as_str);
    let colour = |key: &str| text(key)?.parse::<Rgb>().ok();
    let palette: Vec<Rgb> =
        text("palette")?.split(':').take(17).map(str::parse).collect::<Result<_, _>>().ok()?;
    let ansi = match palette.len() {
        // The bright colours are like the others.
        8 => std::array::from_fn(|i| palette[i % 8]),
        16 => std::array::from_fn(|i| palette[i]),
        _ => return None,
    };
    let foreground = colour("fg")?;
    Some(Theme { foreground, background: colour("bg")?, cursor: foreground, ansi })
}

/// A theme as the header of an asciicast has it. The cursor has no place there.
pub fn theme_value(theme: &Theme) -> JsonValue {
    let palette: Vec<String> = theme.ansi.iter().map(Rgb::to_string).collect();
    JsonValue(json!({
        "fg": theme.foreground.to_string(),
        "bg": theme.background.to_string(),
        "palette": palette.join(":"),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn themes_are_read_as_they_are_written_and_others_are_passed_over() {
        let read = |theme: JsonValue| theme_of(&Header { theme: Some(theme), ..Header::default() });
        for (name, theme) in Theme::BUILT_IN {
            let found = read(theme_value(theme)).expect(name);
            assert_eq!(Theme { cursor: theme.cursor, ..found }, *theme, "{name}");
        }
        let eight = "#000000:#000001:#000002:#000003:#000004:#000005:#000006:#000007";
        let found =
            read(JsonValue(json!({"fg": "#010101", "bg": "#020202", "palette": eight}))).expect("8 colours");
        assert_eq!(found.ansi[12], Rgb(0, 0, 4));
        for wrong in [
            json!(null),
            json!("dark"),
            json!({"fg": "#010101", "bg": "#020202"}),
            json!({"fg": "#010101", "bg": "#020202", "palette": "#000000"}),
            json!({"fg": "#010101", "bg": "#020202", "palette": format!("{eight}:red")}),
            json!({"fg": "#fff", "bg": "#020202", "palette": eight}),
            json!({"fg": "url(x)", "bg": "#020202", "palette": eight}),
        ] {
            assert_eq!(read(JsonValue(wrong.clone())), None, "{wrong}");
        }
    }
}
