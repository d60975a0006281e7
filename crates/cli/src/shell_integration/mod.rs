//! `--shell-integration`: has a shell mark its prompts, commands and output (OSC 133).
//!
//! The shell reads temporary files, which read the user's own files first. Nothing of the user's is
//! changed, and the shells that are started from this one are as they always are.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

use clap::Args;
use tapdeck_host::Launch;
use tempfile::TempDir;

use crate::failure::{Failure, Result};

const BASH: &str = include_str!("integration.bash");
const FISH: &str = include_str!("integration.fish");
const ZSH: &str = include_str!("integration.zsh");
const ZSHENV: &str = include_str!("zshenv.zsh");
const ZPROFILE: &str = include_str!("zprofile.zsh");
const ZSHRC: &str = include_str!("zshrc.zsh");

#[derive(Args, Clone)]
pub(crate) struct ShellIntegrationArgs {
    /// Have bash, zsh or fish mark its prompts and its commands' output, so that turns are exact
    ///
    /// The shell reads its own files as always, and then a temporary one. None of your files is
    /// changed.
    #[arg(long, hide_short_help = true)]
    shell_integration: bool,
}

/// What a shell is started with. Its files are removed with it.
#[derive(Debug)]
pub(crate) struct ShellIntegration {
    argv: Vec<OsString>,
    env: Vec<(OsString, Option<OsString>)>,
    _files: TempDir,
}

impl ShellIntegrationArgs {
    /// Prepares the shell of this launch, if that was asked for.
    pub(crate) fn prepare(&self, launch: &Launch) -> Result<Option<ShellIntegration>> {
        if !self.shell_integration {
            return Ok(None);
        }
        if !launch.place.is_local() {
            return Err(Failure::usage("--shell-integration works on this host only: leave out --on"));
        }
        if launch.no_pty {
            return Err(Failure::usage("--shell-integration needs a terminal: leave out --no-pty"));
        }
        let zdotdir = launch.command.env.iter().rev().find(|(name, _)| name == "ZDOTDIR");
        let zdotdir = match zdotdir {
            Some((_, value)) => value.clone(),
            None => std::env::var_os("ZDOTDIR"),
        };
        ShellIntegration::new(&launch.command.argv, zdotdir).map(Some)
    }
}

impl ShellIntegration {
    fn new(argv: &[OsString], zdotdir: Option<OsString>) -> Result<Self> {
        let Some((program, args)) = argv.split_first() else {
            return Err(Failure::usage("--shell-integration needs a shell to start"));
        };
        let name = Path::new(program).file_name().unwrap_or_default();
        let failed = |e: std::io::Error| Failure::io(format!("cannot prepare the shell: {e}"));
        let files = tempfile::Builder::new().prefix("tapdeck-shell-").tempdir().map_err(failed)?;
        let write = |file: &str, text: &[u8]| std::fs::write(files.path().join(file), text).map_err(failed);
        let mut env = Vec::new();
        let mut new = vec![program.clone()];
        match name.as_bytes() {
            b"bash" => {
                let bash = BashArgs::parse(args)?;
                write("bashrc", &bash.rc())?;
                new.extend(["--rcfile".into(), files.path().join("bashrc").into_os_string()]);
                new.extend(bash.others);
            }
            b"zsh" => {
                interactive("zsh", args, &["-o", "+o"])?;
                if args.iter().any(|a| a == "--no-rcs" || has_letter(a, b'f')) {
                    return Err(Failure::usage(
                        "--shell-integration needs a zsh that reads its files: leave out -f",
                    ));
                }
                write(".zshenv", ZSHENV.as_bytes())?;
                write(".zprofile", ZPROFILE.as_bytes())?;
                write(".zshrc", [ZSHRC, ZSH].concat().as_bytes())?;
                env.push(("TAPDECK_ZDOTDIR".into(), zdotdir));
                env.push(("ZDOTDIR".into(), Some(files.path().into())));
                new.extend(args.iter().cloned());
            }
            b"fish" => {
                const WITH_VALUE: [&str; 8] =
                    ["-C", "--init-command", "-d", "--debug", "-o", "--debug-output", "-f", "--features"];
                interactive("fish", args, &WITH_VALUE)?;
                write("integration.fish", FISH.as_bytes())?;
                let path = quoted(files.path().join("integration.fish").as_os_str());
                new.extend(args.iter().cloned());
                new.extend(["-C".into(), OsString::from_vec([b"source ".as_slice(), &path].concat())]);
            }
            other => {
                return Err(Failure::usage(format!(
                    "--shell-integration supports bash, zsh and fish, not {:?}",
                    String::from_utf8_lossy(other)
                )));
            }
        }
        Ok(Self { argv: new, env, _files: files })
    }

    /// Has the launch start the shell with its files. What describes the session keeps the command
    /// as it was given.
    pub(crate) fn apply(&self, launch: &mut Launch) {
        launch.command.argv.clone_from(&self.argv);
        launch.command.env.extend(self.env.iter().cloned());
    }
}

/// A shell that runs a command or a script has no prompt.
fn not_interactive(shell: &str, arg: &OsStr) -> Failure {
    Failure::usage(format!(
        "--shell-integration needs an interactive {shell}, and {:?} makes it run a command or a script",
        arg.to_string_lossy()
    ))
}

/// Whether an argument is a group of short options with this one.
fn has_letter(arg: &OsStr, letter: u8) -> bool {
    let bytes = arg.as_bytes();
    bytes.first() == Some(&b'-') && bytes.get(1).is_some_and(|b| *b != b'-') && bytes.contains(&letter)
}

/// Checks that these arguments have options only, and none that gives a command.
fn interactive(shell: &str, args: &[OsString], with_value: &[&str]) -> Result<()> {
    let mut rest = args.iter();
    while let Some(arg) = rest.next() {
        if !arg.as_bytes().starts_with(b"-") && !arg.as_bytes().starts_with(b"+") {
            return Err(not_interactive(shell, arg));
        }
        if has_letter(arg, b'c') || arg.as_bytes().starts_with(b"--command") {
            return Err(not_interactive(shell, arg));
        }
        if with_value.iter().any(|option| *arg == **option) {
            rest.next();
        }
    }
    Ok(())
}

/// The arguments of a bash, as far as they say which files it reads.
#[derive(Debug, Default)]
struct BashArgs {
    login: bool,
    no_profile: bool,
    no_rc: bool,
    rc: Option<OsString>,
    others: Vec<OsString>,
}

impl BashArgs {
    fn parse(args: &[OsString]) -> Result<Self> {
        let mut bash = Self::default();
        let mut rest = args.iter();
        while let Some(arg) = rest.next() {
            match arg.as_bytes() {
                b"--login" => bash.login = true,
                b"--noprofile" => bash.no_profile = true,
                b"--norc" => bash.no_rc = true,
                b"--rcfile" | b"--init-file" => bash.rc = rest.next().cloned(),
                b"--posix" => {
                    return Err(Failure::usage(
                        "--shell-integration cannot be used with bash --posix, which reads no such file",
                    ));
                }
                b"-o" | b"+o" | b"-O" | b"+O" => {
                    bash.others.push(arg.clone());
                    bash.others.extend(rest.next().cloned());
                }
                [b'-', b'-', ..] => bash.others.insert(0, arg.clone()),
                [b'-' | b'+', _, ..] if !has_letter(arg, b'c') => {
                    let letters: Vec<u8> = arg.as_bytes().iter().copied().filter(|b| *b != b'l').collect();
                    bash.login |= arg.as_bytes().starts_with(b"-") && letters.len() < arg.len();
                    if letters.len() > 1 {
                        bash.others.push(OsString::from_vec(letters));
                    }
                }
                _ => return Err(not_interactive("bash", arg)),
            }
        }
        Ok(bash)
    }

    /// The file that bash reads instead of the user's: it reads those first.
    fn rc(&self) -> Vec<u8> {
        let mut text = Vec::new();
        if self.login {
            if !self.no_profile {
                text.extend_from_slice(
                    b"[[ -r /etc/profile ]] && . /etc/profile\n\
                    if [[ -r ~/.bash_profile ]]; then . ~/.bash_profile\n\
                    elif [[ -r ~/.bash_login ]]; then . ~/.bash_login\n\
                    elif [[ -r ~/.profile ]]; then . ~/.profile\nfi\n",
                );
            }
        } else if let Some(rc) = &self.rc {
            let rc = quoted(rc);
            text.extend_from_slice(&[b"[[ -r ", rc.as_slice(), b" ]] && . ", &rc, b"\n"].concat());
        } else if !self.no_rc {
            text.extend_from_slice(b"[[ -r ~/.bashrc ]] && . ~/.bashrc\n");
        }
        text.extend_from_slice(BASH.as_bytes());
        text
    }
}

/// A word in single quotes, as bash and fish read it.
fn quoted(word: &OsStr) -> Vec<u8> {
    let mut out = vec![b'\''];
    for b in word.as_bytes() {
        match b {
            // Outside of quotes a backslash means the same in both shells.
            b'\'' | b'\\' => out.extend_from_slice(&[b'\'', b'\\', *b, b'\'']),
            b => out.push(*b),
        }
    }
    out.push(b'\'');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prepared(command: &[&str]) -> Result<Vec<String>, String> {
        let argv: Vec<OsString> = command.iter().map(Into::into).collect();
        let shell = ShellIntegration::new(&argv, None).map_err(|e| e.to_string())?;
        let front = std::env::temp_dir().join("tapdeck-shell-").to_string_lossy().into_owned();
        let masked = |arg: &OsString| {
            let arg = arg.to_string_lossy().into_owned();
            let Some(start) = arg.find(&front) else { return arg };
            let rest = &arg[start + front.len()..];
            format!("{}DIR{}", &arg[..start], &rest[rest.find('/').unwrap_or(0)..])
        };
        Ok(shell.argv.iter().map(masked).collect())
    }

    #[test]
    fn a_shell_keeps_its_arguments() {
        let cases: [(&[&str], &[&str]); 5] = [
            (&["bash"], &["bash", "--rcfile", "DIR/bashrc"]),
            (
                &["/bin/bash", "-il", "--noediting", "-O", "extglob"],
                &["/bin/bash", "--rcfile", "DIR/bashrc", "--noediting", "-i", "-O", "extglob"],
            ),
            (&["bash", "--norc", "--login"], &["bash", "--rcfile", "DIR/bashrc"]),
            (&["zsh", "-l", "-o", "vi"], &["zsh", "-l", "-o", "vi"]),
            (&["fish", "-C", "cd /"], &["fish", "-C", "cd /", "-C", "source 'DIR/integration.fish'"]),
        ];
        for (command, wanted) in cases {
            assert_eq!(prepared(command).expect("a shell"), wanted, "{command:?}");
        }
    }

    #[test]
    fn what_has_no_prompt_is_refused() {
        let cases: [(&[&str], &str); 7] = [
            (&["vim"], "supports bash, zsh and fish, not \"vim\""),
            (&["bash", "-c", "true"], "interactive bash"),
            (&["bash", "-lc", "true"], "interactive bash"),
            (&["zsh", "script"], "interactive zsh"),
            (&["fish", "--command=true"], "interactive fish"),
            (&["zsh", "-f"], "leave out -f"),
            (&["bash", "--posix"], "--posix"),
        ];
        for (command, wanted) in cases {
            let said = prepared(command).expect_err("no prompt");
            assert!(said.contains(wanted), "{command:?}: {said}");
        }
    }

    #[test]
    fn words_are_quoted_for_both_shells() {
        assert_eq!(quoted(OsStr::new(r"it's a \ b")), br"'it'\''s a '\\' b'");
    }
}
