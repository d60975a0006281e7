//! Formats by the names that people give them: on the command line and as the ends of files' names.

use std::path::Path;

use tapdeck_tape::{Container, Format};

/// The names that `--from` and `--to` take, for messages.
const TAPES: &str =
    "ahr, cast, cast-v2, cast-v3, ttyrec, typescript, ans, 3a, raw or cassette, and .zst behind any of them";
const EXPORTS: &str = "txt, ansi, md, json, csv, html, svg or svg-still";

/// What to make of a recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Target {
    /// A recording in some format.
    Tape(Container),
    /// A picture of it.
    Export(Export),
}

/// What a recording shows, for people and tools without a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Export {
    Txt,
    Ansi,
    Md,
    Json,
    Csv,
    Html,
    Svg,
    SvgStill,
}

impl Target {
    /// By the end of a file's name.
    pub(crate) fn of_path(path: &Path) -> Option<Self> {
        let end = path.extension().and_then(|e| e.to_str()).unwrap_or_default().to_ascii_lowercase();
        export(&end).map(Target::Export).or_else(|| {
            path.file_name().and_then(|n| n.to_str()).and_then(Container::of_name).map(Target::Tape)
        })
    }

    /// A word for reports.
    pub(crate) fn name(self) -> String {
        match self {
            Target::Tape(container) => container_name(container),
            Target::Export(export) => format!("{export:?}").to_ascii_lowercase().replace("svgs", "svg-s"),
        }
    }

    /// Whether nothing in it can act on a terminal.
    pub(crate) fn is_tame(self) -> bool {
        matches!(self, Target::Export(_))
    }
}

/// A container's name as `--from` takes it.
pub(crate) fn container_name(container: Container) -> String {
    let name = match container.format {
        Format::CastV1 => "cast-v1".to_owned(),
        Format::CastV2 => "cast-v2".to_owned(),
        Format::CastV3 => "cast-v3".to_owned(),
        other => other.to_string(),
    };
    if container.zst { format!("{name}.zst") } else { name }
}

/// A target as `--to` takes it.
pub(crate) fn target(text: &str) -> Result<Target, String> {
    if let Some(export) = export(text) {
        return Ok(Target::Export(export));
    }
    let wrong = || format!("{text:?} cannot be written: write {TAPES}; or {EXPORTS}");
    let container = container(text).map_err(|_| wrong())?;
    if container.format == Format::CastV1 {
        return Err(wrong());
    }
    Ok(Target::Tape(container))
}

/// A format as `--from` takes it.
pub(crate) fn container(text: &str) -> Result<Container, String> {
    let (name, zst) = text.strip_suffix(".zst").map_or((text, false), |name| (name, true));
    let format = match name {
        "ahr" => Format::Ahr,
        "cast-v1" | "asciicast-v1" => Format::CastV1,
        "cast-v2" | "asciicast-v2" => Format::CastV2,
        "cast" | "asciicast" | "cast-v3" | "asciicast-v3" => Format::CastV3,
        "ttyrec" => Format::Ttyrec,
        "typescript" | "script" => Format::Typescript,
        "ans" => Format::Ans,
        "3a" => Format::ThreeA,
        "raw" => Format::Raw,
        "cassette" => Format::Cassette,
        _ => return Err(format!("{text:?} is no format that is known here: write {TAPES}; or cast-v1")),
    };
    Ok(Container { format, zst })
}

fn export(name: &str) -> Option<Export> {
    Some(match name {
        "txt" | "text" => Export::Txt,
        "ansi" => Export::Ansi,
        "md" | "markdown" => Export::Md,
        "json" => Export::Json,
        "csv" => Export::Csv,
        "html" | "htm" => Export::Html,
        "svg" => Export::Svg,
        "svg-still" => Export::SvgStill,
        _ => return None,
    })
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
        ] {
            let found = Target::of_path(Path::new(path)).map(Target::name);
            assert_eq!(found.as_deref(), Some(name), "{path}");
            assert_eq!(target(name).map(Target::name).as_deref(), Ok(name));
        }
        assert_eq!(target("svg-still").map(Target::name).as_deref(), Ok("svg-still"));
        assert_eq!(Target::of_path(Path::new("a.doc")), None);
        assert!(target("3a").is_ok() && target("cast-v1").is_err() && container("cast-v1").is_ok());
    }
}
