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

/// A recording tells its players how long a pause may be, in every format that can say so.
#[test]
fn recordings_limit_the_pauses_of_their_players() {
    let home = Home::new();
    let config = "[rec]\nidle_limit = \"250ms\"\n";
    for (args, limit) in [
        (&["rec", "a.ahr", "--", "true"][..], 250),
        (&["rec", "-i", "2s", "b.ahr", "--", "true"], 2000),
        (&["rec", "c.cast", "--", "true"], 250),
    ] {
        let (code, _, said) = with(&home, config, args);
        assert_eq!(code, Some(0), "{said}");
        let file = args.iter().find(|a| a.contains('.')).expect("a name");
        let player = tapdeck_host::Player::open(&home.path(file), Default::default()).expect("it plays");
        assert_eq!(player.idle_limit().map(|limit| limit.as_millis()), Some(limit), "{file}");
    }
    assert_eq!(home.run(["convert", "-q", "a.ahr", "-o", "d.cast"]).status.code(), Some(0));
    let cast = fs::read_to_string(home.path("d.cast")).expect("written");
    assert!(cast.contains("\"idle_time_limit\":0.25"), "{cast}");
    assert_eq!(home.run(["convert", "-q", "d.cast", "-o", "e.ahr"]).status.code(), Some(0));
    let meta = home.meta("e.ahr").to_string();
    assert!(meta.contains("\"idleLimitMs\":250"), "{meta}");
}

/// The user's themes are shown, used and checked like those that are built in.
#[test]
fn themes_have_the_same_names_everywhere() {
    let home = Home::new();
    let cast =
        "{\"version\":2,\"width\":20,\"height\":3}\n[0.1,\"o\",\"\\u001b[34mblue\"]\n[9.0,\"o\",\"!\"]\n";
    fs::write(home.path("a.cast"), cast).expect("written");
    let config = "[theme]\nname = \"mine\"\n[themes.mine]\nbase = \"light\"\nbackground = \"#010203\"\n";
    let (_, shown, _) = with(&home, config, &["config"]);
    assert!(shown.contains("\n[themes.mine]\n"), "{shown}");
    assert!(shown.contains("background = \"#010203\"") && shown.contains("# line 5"), "{shown}");
    // Exports have the theme of the option, or else that of the configuration.
    for (option, background) in [(None, "#010203"), (Some("sepia"), "#f6efe0"), (Some("mine"), "#010203")] {
        for out in ["a.svg", "a.html"] {
            let mut args = vec!["convert", "-q", "--overwrite", "a.cast", "-o", out];
            args.extend(option.iter().flat_map(|name| ["--theme", name]));
            let (code, _, said) = with(&home, config, &args);
            assert_eq!(code, Some(0), "{said}");
            let text = fs::read_to_string(home.path(out)).expect("written");
            assert!(text.contains(background), "{option:?}: {out}");
        }
    }
    // A cast carries a theme only when it is asked to, and exports show it then.
    let (code, ..) = with(&home, config, &["convert", "-q", "a.cast", "-o", "plain.cast"]);
    assert_eq!(code, Some(0));
    assert!(!fs::read_to_string(home.path("plain.cast")).expect("written").contains("theme"));
    let (code, ..) = with(&home, "", &["convert", "-q", "--theme", "dracula", "a.cast", "-o", "own.cast"]);
    assert_eq!(code, Some(0));
    let (code, ..) = with(&home, "", &["convert", "-q", "own.cast", "-o", "own.svg"]);
    assert_eq!(code, Some(0));
    assert!(fs::read_to_string(home.path("own.svg")).expect("written").contains("#282a36"));
    // A name that does not exist is an error everywhere, with what was probably meant.
    for args in [
        &["convert", "a.cast", "-o", "x.svg", "--theme", "mnie"][..],
        &["play", "a.cast", "--theme", "mnie"],
        &["view", "a.cast", "--theme", "mnie"],
        &["dash", "--theme", "mnie"],
        &["web", "--theme", "mnie"],
    ] {
        let (code, _, said) = with(&home, config, args);
        assert_eq!(code, Some(2), "{args:?}: {said}");
        assert!(said.contains("there is no theme \"mnie\"; did you mean \"mine\"? Themes: dark, "), "{said}");
    }
    let (code, _, said) = with(&home, config, &["convert", "a.cast", "-o", "x.txt", "--theme", "mine"]);
    assert_eq!(code, Some(2));
    assert!(said.contains("--theme is for html, svg, pictures, films, cast and ahr"), "{said}");
    // On a terminal of the recording's size, too, the theme is painted; the cursor is given back.
    for (args, blue) in
        [(&["play", "--theme", "light", "a.cast"][..], "38;2;11;87;194"), (&["play", "a.cast"], "34m")]
    {
        let mut seat = Seat::with_size(home.tapdeck(args), 20, 3);
        seat.wait_text("blue");
        seat.send("q");
        assert!(seat.end().success());
        let bytes = String::from_utf8_lossy(&seat.raw).into_owned();
        assert!(bytes.contains(blue), "{args:?}: {bytes:?}");
        assert_eq!(bytes.contains("\x1b]112\x1b\\"), args.len() > 2, "{bytes:?}");
    }
}
