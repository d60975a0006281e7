//! What a recording can be converted to.

use std::fmt;
use std::path::Path;
use std::str::FromStr;

use tapdeck_tape::{Container, Format};

use super::ConvertError;

/// What to make of a recording: a recording in another format, or what it shows, for people and
/// tools without a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum To {
    /// The native recording.
    Ahr,
    /// asciicast, version 3.
    Cast,
    /// asciicast, version 2.
    CastV2,
    /// ttyrec.
    Ttyrec,
    /// A typescript, and its timing file.
    Typescript,
    /// DOS art.
    Ans,
    /// Animated ASCII art.
    ThreeA,
    /// The output alone.
    Raw,
    /// A cassette: a folder of evidence for tests.
    Cassette,
    /// A recording that is compressed with Zstandard; of a cassette, one archive.
    Compressed(Format),
    /// Text.
    Txt,
    /// Text with its colours.
    Ansi,
    /// Markdown.
    Md,
    /// JSON, a line for each line of text.
    Json,
    /// CSV.
    Csv,
    /// A page that plays.
    Html,
    /// An animated picture.
    Svg,
    /// A picture of the last screen.
    SvgStill,
    /// A picture of the last screen, in pixels.
    Png,
    /// A film.
    Gif,
    /// A film.
    Apng,
    /// A film, which ffmpeg writes.
    Webp,
    /// A film, which ffmpeg writes.
    Mp4,
    /// A film, which ffmpeg writes.
    Webm,
}

/// Exports by the names that stand for them.
const EXPORTS: [(&str, To); 17] = [
    ("txt", To::Txt),
    ("ansi", To::Ansi),
    ("md", To::Md),
    ("json", To::Json),
    ("csv", To::Csv),
    ("html", To::Html),
    ("svg", To::Svg),
    ("svg-still", To::SvgStill),
    ("png", To::Png),
    ("gif", To::Gif),
    ("apng", To::Apng),
    ("webp", To::Webp),
    ("mp4", To::Mp4),
    ("webm", To::Webm),
    ("text", To::Txt),
    ("markdown", To::Md),
    ("htm", To::Html),
];

impl To {
    /// Whether a recording is written that carries a theme for its player.
    pub(super) fn carries_theme(self) -> bool {
        self.container()
            .is_some_and(|c| matches!(c.format, Format::CastV2 | Format::CastV3) || self == Self::Ahr)
    }

    /// Whether a theme makes a difference to what is written.
    pub fn has_colours(self) -> bool {
        self.carries_theme()
            || matches!(self, To::Html | To::Svg | To::SvgStill)
            || self == Self::Png
            || self.is_film()
    }

    /// Whether it is a film made of pixels.
    pub fn is_film(self) -> bool {
        matches!(self, Self::Gif | Self::Apng | Self::Webp | Self::Mp4 | Self::Webm)
    }

    /// Whether it is one picture of the last screen.
    pub fn is_still(self) -> bool {
        matches!(self, Self::Png | Self::SvgStill)
    }

    /// Whether turns of the alternate screen stand between the lines that are written.
    pub(super) fn has_turns(self) -> bool {
        matches!(self, Self::Txt | Self::Ansi | Self::Md | Self::Json | Self::Csv | Self::Html)
    }

    /// The one that the end of a file's name says.
    pub fn of_path(path: &Path) -> Option<Self> {
        let end = path.extension().and_then(|e| e.to_str()).unwrap_or_default().to_ascii_lowercase();
        let name = path.file_name().and_then(|n| n.to_str());
        export(&end).or_else(|| name.and_then(Container::of_name).map(Self::from))
    }

    /// The format of the recording that it is; `None` for what only shows one.
    pub fn container(self) -> Option<Container> {
        let format = match self {
            Self::Ahr => Format::Ahr,
            Self::Cast => Format::CastV3,
            Self::CastV2 => Format::CastV2,
            Self::Ttyrec => Format::Ttyrec,
            Self::Typescript => Format::Typescript,
            Self::Ans => Format::Ans,
            Self::ThreeA => Format::ThreeA,
            Self::Raw => Format::Raw,
            Self::Cassette => Format::Cassette,
            Self::Compressed(format) => return Some(Container { format, zst: true }),
            _ => return None,
        };
        Some(Container { format, zst: false })
    }
}

impl From<Container> for To {
    fn from(container: Container) -> Self {
        match (container.zst, container.format) {
            (false, Format::Ahr) => Self::Ahr,
            (false, Format::CastV3) => Self::Cast,
            (false, Format::CastV2) => Self::CastV2,
            (false, Format::Ttyrec) => Self::Ttyrec,
            (false, Format::Typescript) => Self::Typescript,
            (false, Format::Ans) => Self::Ans,
            (false, Format::ThreeA) => Self::ThreeA,
            (false, Format::Raw) => Self::Raw,
            (false, Format::Cassette) => Self::Cassette,
            // Version 1 of asciicast is only read; writing says so.
            (_, format) => Self::Compressed(format),
        }
    }
}

fn export(name: &str) -> Option<To> {
    EXPORTS.iter().find(|(known, _)| *known == name).map(|(_, to)| *to)
}

impl FromStr for To {
    type Err = ConvertError;

    fn from_str(text: &str) -> Result<Self, ConvertError> {
        let unknown = || ConvertError::UnknownFormat(text.to_owned());
        if let Some(export) = export(text) {
            return Ok(export);
        }
        let container: Container = text.parse().map_err(|_| unknown())?;
        if container.format == Format::CastV1 { Err(unknown()) } else { Ok(container.into()) }
    }
}

impl fmt::Display for To {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.container() {
            Some(container) => write!(f, "{container}"),
            None => {
                let name = EXPORTS.iter().find(|(_, to)| to == self).map_or("unknown", |(name, _)| name);
                f.write_str(name)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_ends_of_names() {
        for (path, name) in [
            ("a.ahr", "ahr"),
            ("a.cast", "cast-v3"),
            ("a.cast.zst", "cast-v3.zst"),
            ("b/a.ttyrec", "ttyrec"),
            ("typescript", "typescript"),
            ("a.ans", "ans"),
            ("a.ansi", "ansi"),
            ("a.raw", "raw"),
            ("a.cassette", "cassette"),
            ("a.tar.zst", "cassette.zst"),
            ("a.SVG", "svg"),
            ("a.png", "png"),
            ("a.gif", "gif"),
            ("a.mp4", "mp4"),
        ] {
            let found = To::of_path(Path::new(path)).map(|to| to.to_string());
            assert_eq!(found.as_deref(), Some(name), "{path}");
            assert_eq!(name.parse::<To>().map(|to| to.to_string()).ok().as_deref(), Some(name));
        }
        assert_eq!("svg-still".parse::<To>().ok(), Some(To::SvgStill));
        assert_eq!(To::of_path(Path::new("a.doc")), None);
        assert!("3a".parse::<To>().is_ok() && "cast-v1".parse::<To>().is_err());
        assert!("cast-v1".parse::<Container>().is_ok());
    }
}
