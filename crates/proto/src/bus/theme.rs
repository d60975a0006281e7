//! The colors that a painter wants to see.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// What the default colors and the 16 ANSI colors look like to a painter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PaintTheme {
    /// Text of the default color.
    pub fg: Hex,
    /// The background of the screen.
    pub bg: Hex,
    /// The cursor.
    pub cursor: Hex,
    /// The 16 ANSI colors.
    pub ansi: [Hex; 16],
}

/// A color, written as `rrggbb`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hex(pub u8, pub u8, pub u8);

impl fmt::Display for Hex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:02x}{:02x}{:02x}", self.0, self.1, self.2)
    }
}

/// A text that is no color.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[error("a color is rrggbb, and not {0:?}")]
pub struct HexError(pub String);

impl FromStr for Hex {
    type Err = HexError;

    fn from_str(text: &str) -> Result<Self, HexError> {
        let digits = text.len() == 6 && text.bytes().all(|b| b.is_ascii_hexdigit());
        let number = u32::from_str_radix(text, 16).ok().filter(|_| digits);
        let [_, r, g, b] = number.ok_or_else(|| HexError(text.to_owned()))?.to_be_bytes();
        Ok(Self(r, g, b))
    }
}

impl Serialize for Hex {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Hex {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        String::deserialize(from)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for Hex {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Hex".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "description": "A color, written as `rrggbb`.",
            "type": "string",
            "pattern": "^[0-9a-fA-F]{6}$",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_are_six_digits() {
        assert_eq!("0aB1ff".parse::<Hex>().map(|c| c.to_string()), Ok("0ab1ff".to_owned()));
        for wrong in ["", "#0ab1ff", "0ab1f", "0ab1fff", "+ab1ff", "0ab1fg", "日本"] {
            assert!(wrong.parse::<Hex>().is_err(), "{wrong}");
        }
    }
}
