//! `tapdeck config`: what can be set, what is set, and where that comes from.

use std::fmt::Write as _;
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::process::Command;

use clap::{Args, Subcommand};
use serde_json::{Map, Value, json};
use tapdeck::{OutFile, paths};

use crate::config::{Config, ConfigFile, Key, OWN_THEME, TABLES};
use crate::ending::{Ending, print, print_json};
use crate::failure::{Failure, Result};

/// Show and edit the configuration.
#[derive(Args)]
#[command(after_help = "\
Settings are in ~/.config/tapdeck/config.toml, or in the file that TAPDECK_CONFIG names.

Examples:
  tapdeck config                  print every setting, its value and its origin
  tapdeck config init             write a file with every setting, commented out
  tapdeck config edit             open the file in your editor, then check it")]
pub(crate) struct ConfigArgs {
    #[command(subcommand)]
    action: Option<Action>,
}

#[derive(Subcommand)]
enum Action {
    /// Print every setting, its value and its origin
    Show {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Open the configuration file in $VISUAL or $EDITOR, then check it
    Edit,
    /// Check the configuration file
    Check,
    /// Print the path of the configuration file
    Path,
    /// Write a configuration file with every setting commented out
    Init {
        /// Replace an existing file
        #[arg(long)]
        overwrite: bool,
    },
    /// Print the reference page of the manual
    #[command(hide = true)]
    Reference,
}

pub(crate) fn run(args: &ConfigArgs) -> Result {
    match &args.action {
        None => show(false),
        Some(Action::Show { json }) => show(*json),
        Some(Action::Edit) => edit(),
        Some(Action::Check) => check(),
        Some(Action::Path) => {
            print(format_args!("{}\n", place()?.display()));
            Ok(Ending::Done)
        }
        Some(Action::Init { overwrite }) => init(*overwrite),
        Some(Action::Reference) => {
            print(format_args!("{}", reference()));
            Ok(Ending::Done)
        }
    }
}

impl ConfigArgs {
    /// Whether failures are reported as JSON.
    pub(crate) fn reports_json(&self) -> bool {
        matches!(self.action, Some(Action::Show { json: true }))
    }
}

fn place() -> Result<PathBuf> {
    paths::config_file().ok_or_else(|| {
        Failure::usage("this user has no home folder for a configuration: set TAPDECK_CONFIG to a file")
    })
}

fn keys() -> impl Iterator<Item = Key> {
    TABLES.iter().flat_map(|table| table.keys.iter().copied())
}

fn show(as_json: bool) -> Result {
    let file = ConfigFile::read()?;
    if as_json {
        let entry = |key: Key| {
            let from = file.line(key).map_or("default", |_| "file");
            let value = json!({"value": file.config.value(key), "from": from, "line": file.line(key)});
            (format!("{}.{}", key.table, key.name), value)
        };
        let mut settings: Map<String, Value> = keys().map(entry).collect();
        for (place, name, value, line) in file.own_themes().into_iter().filter(|own| !own.1.is_empty()) {
            let value = json!({"value": value, "from": "file", "line": line});
            settings.insert(format!("{place}.{name}"), value);
        }
        print_json(&json!({"file": file.path, "exists": file.exists, "settings": settings}));
        return Ok(Ending::Done);
    }
    match (&file.path, file.exists) {
        (Some(path), true) => print(format_args!("# {}\n", path.display())),
        (Some(path), false) => {
            print(format_args!("# {} does not exist: `tapdeck config init` writes it\n", path.display()));
        }
        (None, _) => print(format_args!("# There is no folder for a configuration.\n")),
    }
    for table in TABLES {
        print(format_args!("\n[{}]\n", table.name));
        for key in table.keys {
            let setting = format!("{} = {}", key.name, file.config.value(*key));
            match file.line(*key) {
                Some(line) => print(format_args!("{setting:<40} # line {line}\n")),
                None => print(format_args!("{setting:<40} # default\n")),
            }
        }
    }
    for (place, name, value, line) in file.own_themes() {
        if name.is_empty() {
            print(format_args!("\n[{place}]\n"));
        } else {
            print(format_args!("{:<40} # line {line}\n", format!("{name} = {value}")));
        }
    }
    Ok(Ending::Done)
}

fn check() -> Result {
    let file = ConfigFile::read()?;
    let path = file.path.as_deref().unwrap_or(Path::new("")).display();
    match file.exists {
        true => print(format_args!("{path}: fine\n")),
        false => print(format_args!("{path}: does not exist; every setting has its default\n")),
    }
    Ok(Ending::Done)
}

fn init(overwrite: bool) -> Result {
    let path = place()?;
    if let Some(folder) = path.parent() {
        tapdeck_host::disk::create_folders(folder).map_err(|e| Failure::file(folder, &e))?;
    }
    let file = OutFile::create_shared(&path, overwrite);
    match file.and_then(|mut file| file.write_all(template().as_bytes()).and_then(|()| file.commit())) {
        Ok(()) => print(format_args!("{}\n", path.display())),
        Err(e) if e.kind() == ErrorKind::AlreadyExists => {
            return Err(Failure::usage(format!(
                "{} exists: `tapdeck config edit` opens it, --overwrite replaces it",
                path.display()
            )));
        }
        Err(e) => return Err(Failure::file(&path, &e)),
    }
    Ok(Ending::Done)
}

fn edit() -> Result {
    let path = place()?;
    if !path.exists() {
        init(false)?;
    }
    let editor = ["VISUAL", "EDITOR"].into_iter().find_map(|name| std::env::var(name).ok());
    let editor = editor.filter(|editor| !editor.trim().is_empty()).unwrap_or_else(|| "vi".into());
    // As git does: the variable may hold arguments, too.
    #[expect(clippy::disallowed_methods, reason = "it starts the user's editor, not a session's program")]
    let mut command = Command::new("sh");
    let status = command.arg("-c").arg(format!("{editor} \"$1\"")).arg(&editor).arg(&path).status();
    let status = status.map_err(|e| Failure::io(format!("cannot start {editor}: {e}")))?;
    if !status.success() {
        return Err(Failure::check(format!("{editor} failed with {status}; nothing was checked")));
    }
    check()
}

/// The file that `init` writes.
fn template() -> String {
    let mut text =
        "# Settings of Tapdeck. Each line shows the default; take the # away to change it.\n".to_owned();
    for table in TABLES {
        text.push('\n');
        comment(&mut text, table.text);
        // Writing to a string cannot fail.
        let _ = writeln!(text, "[{}]", table.name);
        for key in table.keys {
            text.push('\n');
            comment(&mut text, key.text);
            let _ = writeln!(text, "# {} = {}", key.name, Config::default().value(*key));
        }
    }
    text.push('\n');
    comment(&mut text, OWN_THEME.text);
    text.push_str("#[themes.mine]\n");
    for key in OWN_THEME.keys {
        let _ = writeln!(text, "#{} = {}", key.name, Config::default().value(*key));
    }
    text
}

fn comment(text: &mut String, lines: &[&str]) {
    for line in lines {
        text.push_str("# ");
        text.push_str(line.trim());
        text.push('\n');
    }
}

/// The reference page of the manual.
fn reference() -> String {
    let mut text = String::new();
    for table in TABLES.iter().chain([&OWN_THEME]) {
        // Writing to a string cannot fail.
        let _ = write!(text, "## `[{}]`\n\n{}\n\n", table.name, joined(table.text));
        text.push_str("| setting | default | meaning |\n| --- | --- | --- |\n");
        for key in table.keys {
            let default = Config::default().value(*key);
            let _ = writeln!(text, "| `{}` | `{default}` | {} |", key.name, joined(key.text));
        }
        text.push('\n');
    }
    text
}

fn joined(lines: &[&str]) -> String {
    lines.iter().map(|line| line.trim()).collect::<Vec<_>>().join(" ")
}
