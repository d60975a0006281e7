//! Which program it was: the file that ran, links resolved, with the interpreter that a `#!` names
//! and the script that an interpreter is given. Nothing is run to find out.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use serde_json::Value;
use tapdeck_tape::cassette::{Binary, Digester, Harness, digest_hex};

use super::find_program;

/// The kernel follows no more scripts than this either.
const DEPTH: usize = 5;
/// What is read of a script for its `#!`.
const HEAD: u64 = 256;
/// Folders above a program in which its package is looked for.
const PACKAGE_DEPTH: usize = 6;
/// The longest description of a package.
const MAX_PACKAGE: u64 = 1 << 20;
/// Programs whose first argument is the program that they run.
const INTERPRETERS: [&str; 14] = [
    "node", "nodejs", "deno", "bun", "python", "python3", "ruby", "perl", "php", "lua", "sh", "bash", "dash",
    "zsh",
];

/// Finds the files that a command runs: the program first.
///
/// # Errors
/// When there is no such program.
pub fn executables(argv: &[OsString], cwd: Option<&Path>) -> Result<Vec<Binary>, super::PreflightError> {
    let Some(program) = argv.first() else { return Ok(Vec::new()) };
    let mut found = Vec::new();
    let program = find_program(program, cwd)?;
    follow(&program, "program", 0, &mut found);
    let stem = |path: &Path| path.file_name().map(|name| name.to_string_lossy().into_owned());
    let is_interpreter = stem(&program).is_some_and(|name| {
        let name = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
        INTERPRETERS.iter().any(|known| known.trim_end_matches('3') == name)
    });
    if is_interpreter {
        // Options with values of their own hide the script; then it is not told.
        let script = argv[1..].iter().find(|arg| !arg.as_bytes().starts_with(b"-"));
        let code = argv[1..].iter().any(|arg| matches!(arg.as_bytes(), b"-c" | b"-e" | b"-m" | b"-p"));
        let path = script.filter(|_| !code).map(|script| cwd.unwrap_or(Path::new("")).join(script));
        if let Some(path) = path.filter(|path| path.is_file()) {
            follow(&path, "script", 0, &mut found);
        }
    }
    Ok(found)
}

/// Adds a file, and what runs it.
fn follow(path: &Path, role: &str, depth: usize, found: &mut Vec<Binary>) {
    let resolved = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    found.push(describe(path, &resolved, role));
    if depth + 1 < DEPTH
        && let Some(interpreter) = interpreter(&resolved)
    {
        follow(&interpreter, "interpreter", depth + 1, found);
    }
}

fn describe(path: &Path, resolved: &Path, role: &str) -> Binary {
    // A file that may be run but not read has a path alone.
    let sha256 = digest(resolved).ok();
    Binary {
        name: path.file_name().unwrap_or_default().to_string_lossy().into_owned(),
        role: role.to_owned(),
        version: package_version(resolved),
        path_digest_sha256: Some(digest_hex(resolved.as_os_str().as_bytes())),
        sha256,
        ..Binary::default()
    }
}

fn digest(path: &Path) -> io::Result<String> {
    let mut file = File::open(path)?;
    let mut digest = Digester::default();
    let mut piece = vec![0; 256 * 1024];
    loop {
        match file.read(&mut piece)? {
            0 => return Ok(digest.finish()),
            n => digest.update(&piece[..n]),
        }
    }
}

/// The program in the first line of a script. `env` names it in its arguments.
fn interpreter(script: &Path) -> Option<PathBuf> {
    let mut head = Vec::new();
    File::open(script).ok()?.take(HEAD).read_to_end(&mut head).ok()?;
    let line = head.strip_prefix(b"#!")?.split(|b| *b == b'\n').next()?;
    let mut words =
        line.split(|b| b.is_ascii_whitespace()).filter(|word| !word.is_empty()).map(OsStr::from_bytes);
    let program = words.next()?;
    if Path::new(program).file_name() != Some(OsStr::new("env")) {
        return Some(program.into());
    }
    let is_option = |word: &OsStr| word.as_bytes().starts_with(b"-") || word.as_bytes().contains(&b'=');
    let named = words.find(|word| !is_option(word))?;
    find_program(named, None).ok()
}

/// Name and version of the package that a program belongs to, by the `package.json` above it.
fn package_version(program: &Path) -> Option<String> {
    for folder in program.ancestors().skip(1).take(PACKAGE_DEPTH) {
        let mut text = Vec::new();
        let Ok(file) = File::open(folder.join("package.json")) else { continue };
        file.take(MAX_PACKAGE).read_to_end(&mut text).ok()?;
        let package: Value = serde_json::from_slice(&text).ok()?;
        let text = |key: &str| package.get(key).and_then(Value::as_str);
        if let Some(version) = text("version") {
            return Some(text("name").map_or_else(|| version.to_owned(), |name| format!("{name} {version}")));
        }
    }
    None
}

/// Fills in which program it was. `said` is what the program itself told of its version.
pub fn name_binary(harness: &mut Harness, found: Vec<Binary>, said: Option<String>) {
    if let Some(program) = found.first() {
        harness.binary_path_digest_sha256.clone_from(&program.path_digest_sha256);
        harness.binary_sha256.clone_from(&program.sha256);
    }
    // What runs a script has a version of its own, which is not the program's.
    let ours = found.iter().filter(|binary| binary.role != "interpreter" && binary.role != "needed");
    harness.binary_version = said.or_else(|| ours.filter_map(|binary| binary.version.clone()).next());
    harness.binaries = found;
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    /// A program that was installed by npm: a link to a script of a package, run by an interpreter
    /// that `env` finds.
    #[test]
    fn links_scripts_and_packages_are_resolved() {
        let folder = tempfile::tempdir().expect("a folder");
        let at = |name: &str| folder.path().join(name);
        std::fs::create_dir_all(at("lib/agent/bin")).expect("made");
        let script = "#!/usr/bin/env -S LC_ALL=C sh\necho hello\n";
        std::fs::write(at("lib/agent/bin/cli.js"), script).expect("written");
        std::fs::write(at("lib/agent/package.json"), r#"{"name": "@x/agent", "version": "1.2.3"}"#)
            .expect("written");
        std::fs::set_permissions(at("lib/agent/bin/cli.js"), PermissionsExt::from_mode(0o755)).expect("set");
        symlink("lib/agent/bin/cli.js", at("agent")).expect("linked");
        let found = executables(&[at("agent").into(), "-x".into()], None).expect("it is there");
        let roles: Vec<_> = found.iter().map(|b| (b.name.as_str(), b.role.as_str())).collect();
        assert_eq!(roles, [("agent", "program"), ("sh", "interpreter")]);
        assert_eq!(found[0].version.as_deref(), Some("@x/agent 1.2.3"));
        assert_eq!(found[0].sha256.as_deref(), Some(&*digest_hex(script.as_bytes())));
        let resolved = std::fs::canonicalize(at("lib/agent/bin/cli.js")).expect("there");
        assert_eq!(found[0].path_digest_sha256, Some(digest_hex(resolved.as_os_str().as_bytes())));
        let shell = std::fs::read(std::fs::canonicalize("/bin/sh").expect("there")).expect("read");
        assert_eq!(found[1].sha256, Some(digest_hex(&shell)));
        let mut harness = Harness::default();
        name_binary(&mut harness, found, None);
        assert_eq!(harness.binary_version.as_deref(), Some("@x/agent 1.2.3"));
        assert_eq!(harness.binary_sha256, Some(digest_hex(script.as_bytes())));
        // The same through its interpreter: the script is named beside it.
        let argv = ["sh".into(), "lib/agent/bin/cli.js".into()];
        let found = executables(&argv, Some(folder.path())).expect("it is there");
        let roles: Vec<_> = found.iter().map(|b| (b.name.as_str(), b.role.as_str())).collect();
        assert_eq!(roles, [("sh", "program"), ("cli.js", "script"), ("sh", "interpreter")]);
        // Code in an argument is no file.
        let found =
            executables(&["sh".into(), "-c".into(), "agent".into()], Some(folder.path())).expect("there");
        assert_eq!(found.len(), 1);
        // A script that names itself has an end.
        std::fs::write(at("own"), format!("#!{}\n", at("own").display())).expect("written");
        std::fs::set_permissions(at("own"), PermissionsExt::from_mode(0o755)).expect("set");
        assert_eq!(executables(&[at("own").into()], None).expect("there").len(), DEPTH);
        assert!(executables(&["no-such-program".into()], None).is_err());
    }
}
