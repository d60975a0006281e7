//! Names of recordings that are given none.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use tapdeck_core::WallTime;

use crate::clock::Clock;
use crate::sys;

/// The user's home: `$HOME`, or what the system's list of users says where that is of no use.
pub fn home_folder() -> Option<PathBuf> {
    home_of(std::env::var_os("HOME"), sys::listed_home)
}

fn home_of(given: Option<OsString>, listed: impl FnOnce() -> Option<PathBuf>) -> Option<PathBuf> {
    let given = given.map(PathBuf::from).filter(|p| p.is_absolute());
    given.or_else(|| listed().filter(|p| p.is_absolute()))
}

/// Where things are kept that outlive a session: `$XDG_STATE_HOME/tapdeck`. For a user without a
/// home that is a place which does not exist, never one that others may write to or foresee.
pub fn state_folder() -> PathBuf {
    known_state_folder().unwrap_or_else(|| "/nonexistent/tapdeck".into())
}

pub(super) fn known_state_folder() -> Option<PathBuf> {
    let state = std::env::var_os("XDG_STATE_HOME").map(PathBuf::from).filter(|p| p.is_absolute());
    Some(state.or_else(|| Some(home_folder()?.join(".local/state")))?.join("tapdeck"))
}

/// Where recordings go that are given no name; `None` for a user without a home.
pub fn recordings_folder() -> Option<PathBuf> {
    Some(known_state_folder()?.join("recordings"))
}

/// The placeholders that [`recording_name`] fills in.
pub const NAME_PLACEHOLDERS: [&str; 4] = ["date", "time", "program", "pid"];

/// The name of a recording that is given none, by this pattern: `{date}`, `{time}`, `{program}` and
/// `{pid}` are filled in.
pub fn recording_name(pattern: &str, clock: Clock, program: &Path) -> String {
    let program = program.file_name().unwrap_or_default().to_string_lossy();
    let program: String =
        program.chars().filter(|c| c.is_alphanumeric() || "-_.".contains(*c)).take(40).collect();
    let when = calendar(clock.wall_start());
    let (date, time) = when.split_once('-').unwrap_or((&when, ""));
    let name = pattern.replace("{date}", date).replace("{time}", time);
    name.replace("{pid}", &std::process::id().to_string()).replace("{program}", &program)
}

/// A moment as `20260304-050607`, in UTC.
pub fn calendar(at: WallTime) -> String {
    at.utc().replace(['-', ':'], "").replace(' ', "-")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Without a home of use, recordings went to a place in `/tmp` that any user could foresee, or
    /// into the folder at hand.
    #[test]
    fn a_home_is_never_made_up() {
        for (given, listed, home) in [
            (Some("/home/ada"), Some("/root"), Some("/home/ada")),
            (None, Some("/root"), Some("/root")),
            (Some(""), Some("/root"), Some("/root")),
            (Some("ada"), Some("/root"), Some("/root")),
            (Some(""), Some(""), None),
            (None, None, None),
        ] {
            let found = home_of(given.map(Into::into), || listed.map(Into::into));
            assert_eq!(found, home.map(PathBuf::from), "{given:?} {listed:?}");
        }
        assert!(sys::listed_home().is_none_or(|home| home.is_absolute()));
    }

    #[test]
    fn dates() {
        for (secs, date) in [
            (0, "19700101-000000"),
            (951_782_400, "20000229-000000"),
            (1_709_251_199, "20240229-235959"),
            (2_147_483_648, "20380119-031408"),
            (4_102_444_800, "21000101-000000"),
        ] {
            assert_eq!(calendar(WallTime::from_secs(secs)), date);
        }
    }
}
