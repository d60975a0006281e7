//! A scenario from the recording of a session.

use std::io::Write;
use std::path::{Path, PathBuf};

use tapdeck::OutFile;
use tapdeck_host::Source;
use tapdeck_proto::bus::{InfoWanted, Role};
use tapdeck_tape::scenario::{SUFFIX, draft};

use crate::ending::{Ending, say};
use crate::failure::{Failure, Result};
use crate::sessions;

/// Writes the scenario. A file that is there already stays as it is.
pub(super) fn write(from: &str, output: &Path) -> Result {
    let name = output.file_name().and_then(|name| name.to_str()).and_then(|name| name.strip_suffix(SUFFIX));
    let Some(name) = name.filter(|name| !name.is_empty()) else {
        return Err(Failure::usage(format!(
            "{} is no name of a scenario; call it NAME{SUFFIX}",
            output.display()
        )));
    };
    let path = recording(from)?;
    let source = Source::find(&path, None, None)?;
    let mut reader = source.open()?;
    let made = draft(&mut *reader, name).map_err(|e| source.read_error(e))?;
    let cannot = |e: std::io::Error| Failure::io(format!("{} cannot be written: {e}", output.display()));
    let mut out = OutFile::create_shared(output, false).map_err(cannot)?;
    out.write_all(made.text.as_bytes()).and_then(|()| out.commit()).map_err(cannot)?;
    if !made.has_input {
        say(format_args!(
            "{} has no input, so the scenario types nothing: record with `tapdeck rec -I`",
            path.display()
        ));
    }
    say(format_args!(
        "{}: {} steps; try it with `tapdeck test --live {}`",
        output.display(),
        made.steps,
        output.display()
    ));
    Ok(Ending::of_check(true))
}

/// The file itself, or the recording of the live session of that name.
fn recording(from: &str) -> Result<PathBuf> {
    if Path::new(from).exists() || from.contains('/') {
        return Ok(from.into());
    }
    let listing = sessions::find(Some(from))?;
    let mut bus = sessions::connect(&listing, "test", Role::Observer)?;
    let info = sessions::ask(&mut bus, &InfoWanted::Full)?;
    info.status.recording.map(PathBuf::from).ok_or_else(|| {
        Failure::not_found(format!("the session {from} is not recorded: start it with `tapdeck rec -I`"))
    })
}
