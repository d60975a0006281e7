//! `tapdeck config`, and what the configuration changes in the other commands.

use std::fs;

use serde_json::Value;

use crate::support::{Home, Seat};

/// Runs the command with this configuration, and returns its exit code and both its outputs.
fn with(home: &Home, config: &str, args: &[&str]) -> (Option<i32>, String, String) {
    fs::write(home.path("c.toml"), config).expect("written");
    let out = home.tapdeck(args).env("TAPDECK_CONFIG", home.path("c.toml")).output().expect("it runs");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (out.status.code(), text(&out.stdout), text(&out.stderr))
}

#[test]
fn settings_are_written_found_shown_and_checked() {
    let home = Home::new();
    let run = |args: &[&str]| {
        let out = home.tapdeck(args).env("XDG_CONFIG_HOME", home.path("conf")).output().expect("it runs");
        (out.status.code(), String::from_utf8_lossy(&out.stdout).into_owned())
    };
    let path = home.path("conf/tapdeck/config.toml");
    assert_eq!(run(&["config", "path"]), (Some(0), format!("{}\n", path.display())));
    assert!(run(&["config"]).1.contains("does not exist"), "{:?}", run(&["config"]));
    assert_eq!(run(&["config", "init"]).0, Some(0));
    assert_eq!(run(&["config", "init"]).0, Some(2), "what the user has written is not replaced");
    let written = fs::read_to_string(&path).expect("written");
    assert!(written.contains("# speed = 1.0\n"), "{written}");
    assert_eq!(run(&["config", "check"]), (Some(0), format!("{}: fine\n", path.display())));
    // Without the marks of comments, the file still says what holds anyway.
    let plain: Vec<_> = written
        .lines()
        .filter_map(|l| {
            l.strip_prefix("# ").filter(|l| l.contains(" = ")).or((l.starts_with('[')).then_some(l))
        })
        .collect();
    let (_, shown, _) = with(&home, &plain.join("\n"), &["config", "show", "--json"]);
    let shown: Value = serde_json::from_str(&shown).expect("JSON");
    let settings = shown["settings"].as_object().expect("settings");
    assert!(settings.values().all(|s| s["from"] == "file"), "{settings:?}");
    let (_, shown, _) = with(&home, "[play]\n\nspeed = 2.5", &["config"]);
    assert!(shown.contains("speed = 2.5") && shown.contains("# line 3"), "{shown}");
    assert!(shown.contains("mouse = true") && shown.contains("# default"), "{shown}");
    let (code, _, message) = with(&home, "[play]\nsped = 2", &["config", "check"]);
    assert_eq!(code, Some(2));
    assert!(
        message.contains("c.toml:2: [play] has no setting \"sped\"; did you mean \"speed\"?"),
        "{message}"
    );
}

#[test]
fn the_editor_of_the_user_opens_the_file_which_is_checked_afterwards() {
    let home = Home::new();
    let mut command = home.tapdeck(["config", "edit"]);
    command.env("XDG_CONFIG_HOME", home.path("conf")).env("VISUAL", "sh -c 'echo \"[plya]\" >> \"$1\"' sh");
    let out = command.output().expect("it runs");
    assert_eq!(out.status.code(), Some(2), "{out:?}");
    assert!(String::from_utf8_lossy(&out.stderr).contains("did you mean [play]?"), "{out:?}");
}

#[test]
fn recordings_follow_the_configuration() {
    let home = Home::new();
    let folder = home.path("mine");
    fs::create_dir(&folder).expect("a folder");
    let config = format!("[rec]\nfolder = \"{}\"\nname = \"{{program}}.cast\"\n", folder.display());
    let (code, _, said) = with(&home, &config, &["rec", "--", "echo", "hello"]);
    assert_eq!(code, Some(0), "{said}");
    let cast = fs::read_to_string(folder.join("echo.cast")).expect("a recording");
    assert!(cast.contains("hello"), "{cast}");

    let config = "[rec]\nscrub = true\ninput = true\n";
    let secret = "ghp_abcdefghijklmnopqrstuvwxyz0123456789";
    for (args, masked) in [
        (&["rec", "a.cast", "--", "echo", secret][..], true),
        (&["rec", "--no-scrub", "b.cast", "--", "echo", secret], false),
    ] {
        let (code, _, said) = with(&home, config, args);
        assert_eq!(code, Some(0), "{said}");
        let file = args.iter().find(|a| a.ends_with(".cast")).expect("a name");
        let cast = fs::read_to_string(home.path(file)).expect("a recording");
        assert_eq!(cast.contains(secret), !masked, "{cast}");
    }
}

/// Pauses are cut, and keys are others, by the configuration alone.
#[test]
fn playing_follows_the_configuration() {
    let home = Home::new();
    let cast = "{\"version\":2,\"width\":80,\"height\":24}\n[0.1,\"o\",\"begin \"]\n[7200.0,\"o\",\"end\"]\n";
    fs::write(home.path("long.cast"), cast).expect("written");
    fs::write(home.path("c.toml"), "[play]\nidle_limit = \"10ms\"\n[keys]\nquit = \"x\"\n").expect("written");
    let mut command = home.tapdeck(["play", "long.cast"]);
    command.env("TAPDECK_CONFIG", home.path("c.toml"));
    let mut seat = Seat::new(command);
    assert!(seat.end().success());
    assert!(seat.screen().contains("begin end"), "{}", seat.screen());
    fs::write(home.path("c.toml"), "[keys]\nquit = \"x\"\n").expect("written");
    let mut command = home.tapdeck(["play", "long.cast"]);
    command.env("TAPDECK_CONFIG", home.path("c.toml"));
    let mut seat = Seat::new(command);
    seat.wait_text("begin");
    seat.send("qx");
    assert!(seat.end().success());
}
