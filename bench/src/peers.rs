//! The peers, and how each is called.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

/// Something that runs a command on a terminal.
pub struct Peer {
    /// Its name in the tables.
    pub name: &'static str,
    program: PathBuf,
}

impl Peer {
    /// The command line that runs `command` under this peer, recording to `out` where it records.
    pub fn command(&self, command: &[OsString], out: &Path) -> Vec<OsString> {
        let program = self.program.clone().into_os_string();
        let quoted = quote(command);
        let own = |args: &[&OsStr]| -> Vec<OsString> {
            std::iter::once(program.clone()).chain(args.iter().map(|a| (*a).to_owned())).collect()
        };
        let s = OsStr::new;
        let mut line = match self.name {
            "bare" => return command.to_vec(),
            "relay" => own(&[s("relay")]),
            "tapdeck run" | "other run" => own(&[s("run"), s("--")]),
            "tapdeck rec" | "other rec" => {
                own(&[s("rec"), s("-q"), s("--overwrite"), out.as_os_str(), s("--")])
            }
            "sync none" | "sync block" => {
                let level = s(self.name.trim_start_matches("sync "));
                own(&[s("rec"), s("-q"), s("--overwrite"), s("--sync"), level, out.as_os_str(), s("--")])
            }
            "encrypted" => own(&[
                s("rec"),
                s("-q"),
                s("--overwrite"),
                s("--encrypt"),
                s("age103lvjd40lsv57mxjwn49ncxfdmw6wl928semjzc60u2qlahdlvvqd8vaqa"),
                out.as_os_str(),
                s("--"),
            ]),
            "script" => return own(&[s("-q"), s("-c"), &quoted, out.as_os_str()]),
            "script -f" => return own(&[s("-q"), s("-f"), s("-c"), &quoted, out.as_os_str()]),
            "ttyrec" => return own(&[s("-e"), &quoted, out.as_os_str()]),
            "tmux" => {
                return own(&[
                    s("-f"),
                    s("/dev/null"),
                    s("-L"),
                    s("tapdeck-bench"),
                    s("new-session"),
                    &quoted,
                    // Its server would outlive the client that is killed in the end.
                    s(";"),
                    s("set-option"),
                    s("destroy-unattached"),
                    s("on"),
                ]);
            }
            _ => return own(&[s("rec"), s("-q"), s("--overwrite"), s("-c"), &quoted, out.as_os_str()]),
        };
        line.extend(command.iter().cloned());
        line
    }
}

/// The command under measurement: the one built beside this program.
pub fn tapdeck() -> Result<PathBuf> {
    let this = std::env::current_exe()?;
    let folder = this.parent().context("no folder")?;
    let tapdeck = folder.join("tapdeck");
    if !tapdeck.exists() {
        anyhow::bail!("{} is missing: cargo build --release first", tapdeck.display());
    }
    Ok(tapdeck)
}

/// The peers that are installed, and the names of those that are not. `other` is another build of
/// Tapdeck, to be measured beside this one.
pub fn installed(other: Option<&Path>) -> Result<(Vec<Peer>, Vec<&'static str>)> {
    let this = std::env::current_exe()?;
    let tapdeck = tapdeck()?;
    let mut peers = vec![
        Peer { name: "bare", program: PathBuf::new() },
        Peer { name: "relay", program: this.clone() },
        Peer { name: "tapdeck run", program: tapdeck.clone() },
        Peer { name: "tapdeck rec", program: tapdeck.clone() },
        Peer { name: "sync none", program: tapdeck.clone() },
        Peer { name: "sync block", program: tapdeck.clone() },
        Peer { name: "encrypted", program: tapdeck },
    ];
    if let Some(program) = other {
        peers.push(Peer { name: "other run", program: program.to_owned() });
        peers.push(Peer { name: "other rec", program: program.to_owned() });
    }
    let mut skipped = Vec::new();
    for (name, program) in
        [("script", "script"), ("script -f", "script"), ("ttyrec", "ttyrec"), ("tmux", "tmux")]
    {
        match find(program) {
            Some(program) => peers.push(Peer { name, program }),
            None => skipped.push(name),
        }
    }
    let asciinemas = std::env::var_os("PATH").unwrap_or_default();
    let mut found = [("asciinema 3", None), ("asciinema 2", None)];
    for program in std::env::split_paths(&asciinemas).map(|p| p.join("asciinema")).filter(|p| p.exists()) {
        let version = Command::new(&program).arg("--version").output()?.stdout;
        let slot = usize::from(!String::from_utf8_lossy(&version).contains(" 3."));
        found[slot].1.get_or_insert(program);
    }
    for (name, program) in found {
        match program {
            Some(program) => peers.push(Peer { name, program }),
            None => skipped.push(name),
        }
    }
    Ok((peers, skipped))
}

/// Where a program is, if it is installed.
pub fn find(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|p| p.join(program)).find(|p| p.exists())
}

/// A command line for a peer that wants a shell's.
pub fn quote(command: &[OsString]) -> OsString {
    let quoted = command.iter().map(|a| format!("'{}'", a.to_string_lossy().replace('\'', "'\\''")));
    quoted.collect::<Vec<_>>().join(" ").into()
}

/// The size of what was recorded, which is then removed; negative where nothing was.
pub fn take_size(out: &Path) -> f64 {
    let size = std::fs::metadata(out).map_or(-1.0, |m| m.len() as f64);
    let _ = std::fs::remove_file(out);
    size
}
