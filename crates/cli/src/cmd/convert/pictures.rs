//! What `convert` does for pictures and films: moments, contact sheets, and how they look.

use std::io::Write;
use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::json;
use tapdeck::OutFile;
use tapdeck::convert::{Conversion, To, sheet};
use tapdeck_core::WinSize;

use super::{HowArgs, names, refused_conversion, run_on};
use crate::ending::{Ending, say};
use crate::failure::{Failure, Result};
use crate::human;
use crate::look_args::{HEADING, LookArgs};
use crate::parse::{self, Position};

/// The most pictures of one command.
const MAX_PICTURES: usize = 1_000;

/// Options of pictures and films.
#[derive(Args, Clone, Debug, Default)]
pub(super) struct PictureArgs {
    /// Show the screen at a position, in png and svg. Repeat it for several files: NAME-1.png, …
    #[arg(long, value_name = "WHERE", value_parser = parse::position, help_heading = HEADING, hide_short_help = true)]
    at: Vec<Position>,
    /// Put the pictures of several positions into one PNG, such as 4x3. Without --at they are
    /// spread over the recording
    #[arg(long, value_name = "COLSxROWS", value_parser = parse::size, help_heading = HEADING, hide_short_help = true)]
    sheet: Option<WinSize>,
    /// Frames a second of a film at most, from 1 to 50
    #[arg(long, value_name = "N", default_value_t = 30, value_parser = clap::value_parser!(u32).range(1..=50), help_heading = HEADING, hide_short_help = true)]
    fps: u32,
    #[command(flatten)]
    look: LookArgs,
}

impl PictureArgs {
    /// The moment of a single picture.
    pub(super) fn moment(&self) -> Option<&Position> {
        match (&self.at[..], self.sheet) {
            ([at], None) => Some(at),
            _ => None,
        }
    }

    /// The target of a conversion that was asked for: a picture at a moment stays as it is.
    pub(super) fn target(&self, target: To) -> To {
        if target == To::Svg && !self.at.is_empty() { To::SvgStill } else { target }
    }

    /// Checks that the options fit the target.
    pub(super) fn check(&self, target: To, has_end: bool) -> Result<()> {
        if self.sheet.is_some() && target != To::Png {
            return Err(Failure::usage(format!("--sheet makes a png, not {target}")));
        }
        if !self.at.is_empty() && !target.is_still() {
            return Err(Failure::usage(format!("--at is for png and svg, not {target}")));
        }
        if has_end && (!self.at.is_empty() || self.sheet.is_some()) {
            return Err(Failure::usage("--at and --sheet say where each picture is, so --to has no meaning"));
        }
        if self.look.is_given() && target != To::Png && !target.is_film() {
            return Err(Failure::usage(format!(
                "the options of pictures are for png and films, not {target}"
            )));
        }
        Ok(())
    }

    /// Sets how the result looks.
    pub(super) fn apply(&self, conversion: Conversion, target: To) -> Result<Conversion> {
        let scale = if target == To::Png && self.sheet.is_none() { 2.0 } else { 1.0 };
        Ok(conversion.look(self.look.look(scale).map_err(Failure::usage)?).fps(self.fps))
    }

    /// Makes several pictures, if that was asked for; `None` if one conversion is enough.
    pub(super) fn run(&self, inputs: &[PathBuf], args: &HowArgs) -> Option<Result> {
        match (&self.at[..], self.sheet) {
            (_, Some(size)) => Some(self.make_sheet(inputs, args, size)),
            ([] | [_], None) => None,
            (several, None) => Some(each(inputs, args, several)),
        }
    }

    fn make_sheet(&self, inputs: &[PathBuf], args: &HowArgs, size: WinSize) -> Result {
        let target = args.target()?;
        self.check(target, args.has_end())?;
        let room = usize::from(size.cols) * usize::from(size.rows);
        let moments = match self.at.len() {
            0 => (1..=room).map(|i| Position::Share(i as f64 / room as f64)).collect(),
            _ => self.at.clone(),
        };
        if moments.len() > room.min(MAX_PICTURES) {
            let why =
                format!("{} pictures do not fit on a sheet of {}x{}", moments.len(), size.cols, size.rows);
            return Err(Failure::usage(why));
        }
        let mut images = Vec::new();
        for at in moments {
            let conversion = args.conversion(inputs, target, args.edits().until(at))?;
            images.push(conversion.image().map_err(|e| refused_conversion(e, args))?);
        }
        let look = self.look.look(1.0).map_err(Failure::usage)?;
        let image = sheet(&images, size.cols.into(), &look).map_err(|e| refused_conversion(e, args))?;
        let png = image.to_png();
        write(args, &png)?;
        if args.json {
            args.report_json(&json!({
                "in": names(inputs),
                "out": args.output.to_string_lossy(),
                "pictures": images.len(),
                "written_bytes": png.len(),
            }));
        } else if !args.quiet {
            let written = human::bytes(png.len() as u64);
            say(format_args!("{}; {written} written", human::count(images.len(), "picture")));
        }
        Ok(Ending::Done)
    }
}

/// Writes a file for each moment.
fn each(inputs: &[PathBuf], args: &HowArgs, moments: &[Position]) -> Result {
    if args.to_stdout() {
        return Err(Failure::usage("several pictures need files: name one with -o"));
    }
    if moments.len() > MAX_PICTURES {
        return Err(Failure::usage(format!("more than {MAX_PICTURES} pictures at once")));
    }
    let target = args.target()?;
    args.pictures.check(target, args.has_end())?;
    for (i, at) in moments.iter().enumerate() {
        let mut one = args.clone();
        one.output = numbered(&args.output, i + 1);
        one.format = Some(target);
        one.pictures.at = vec![at.clone()];
        let ending = run_on(inputs, &one)?;
        if ending != Ending::Done {
            return Ok(ending);
        }
    }
    Ok(Ending::Done)
}

/// The name of one of several files: `x.png` becomes `x-1.png`.
fn numbered(path: &Path, n: usize) -> PathBuf {
    let mut name = path.file_stem().unwrap_or_default().to_owned();
    name.push(format!("-{n}"));
    if let Some(end) = path.extension() {
        name.push(".");
        name.push(end);
    }
    path.with_file_name(name)
}

fn write(args: &HowArgs, png: &[u8]) -> Result<()> {
    if args.to_stdout() {
        let mut out = std::io::stdout().lock();
        let done = out.write_all(png).and_then(|()| out.flush());
        return done.map_err(|e| crate::ending::output_failed(&e));
    }
    let path = &args.output;
    let done = OutFile::create_shared(path, args.overwrite).and_then(|mut file| {
        file.write_all(png)?;
        file.commit()
    });
    done.map_err(|e| Failure::write(path, &e))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_files_are_numbered() {
        for (name, want) in [("x.png", "x-2.png"), ("a/b.c.svg", "a/b.c-2.svg"), ("plain", "plain-2")] {
            assert_eq!(numbered(Path::new(name), 2), Path::new(want));
        }
    }
}
