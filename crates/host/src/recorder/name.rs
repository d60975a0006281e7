//! Names of recordings that are given none.

use std::path::{Path, PathBuf};

use crate::clock::Clock;

/// Where things are kept that outlive a session: `$XDG_STATE_HOME/tapdeck`.
pub fn state_folder() -> PathBuf {
    let state = std::env::var_os("XDG_STATE_HOME").map(PathBuf::from).filter(|p| p.is_absolute());
    let home = || std::env::var_os("HOME").map_or_else(|| "/tmp".into(), PathBuf::from).join(".local/state");
    state.unwrap_or_else(home).join("tapdeck")
}

/// Where recordings go that are given no name, and the name of this one.
pub fn default_path(clock: Clock, program: &Path) -> PathBuf {
    let folder = state_folder().join("recordings");
    let program = program.file_name().unwrap_or_default().to_string_lossy();
    let program: String =
        program.chars().filter(|c| c.is_alphanumeric() || "-_.".contains(*c)).take(40).collect();
    folder.join(format!("{}-{program}-{}.ahr", calendar(clock.wall_start_ns()), std::process::id()))
}

/// A moment as `20260304-050607`, in UTC.
pub fn calendar(wall_ns: u64) -> String {
    let secs = wall_ns / 1_000_000_000;
    let (days, rest) = (secs / 86_400, secs % 86_400);
    // Days to a date in the Gregorian calendar, counted in 400-year eras that begin on 1 March.
    let z = days + 719_468;
    let (era, day_of_era) = (z / 146_097, z % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    let (h, m, s) = (rest / 3_600, rest / 60 % 60, rest % 60);
    format!("{year:04}{month:02}{day:02}-{h:02}{m:02}{s:02}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates() {
        for (secs, date) in [
            (0, "19700101-000000"),
            (951_782_400, "20000229-000000"),
            (1_709_251_199, "20240229-235959"),
            (2_147_483_648, "20380119-031408"),
            (4_102_444_800, "21000101-000000"),
        ] {
            assert_eq!(calendar(secs * 1_000_000_000), date);
        }
    }
}
