//! Titles, tags and noted variables of recordings.

use serde_json::{Value, json};

use crate::live::text;
use crate::support::{Home, older};

#[track_caller]
fn ok(home: &Home, args: &[&str]) -> String {
    let out = home.run(args);
    assert!(out.status.success(), "{args:?}: {}", text(&out));
    String::from_utf8_lossy(&out.stdout).into_owned()
}

#[track_caller]
fn refused(home: &Home, args: &[&str], code: i32, says: &str) {
    let out = home.run(args);
    assert_eq!(out.status.code(), Some(code), "{args:?}: {}", text(&out));
    assert!(text(&out).contains(says), "{args:?}: {}", text(&out));
}

fn meta(home: &Home, file: &str) -> Value {
    let info: Value = serde_json::from_str(&ok(home, &["info", "--json", file])).expect("JSON");
    info["meta"].clone()
}

/// Records with a title, tags and two variables, of which one is not set and one is set here.
fn record(home: &Home, file: &str, more: &[&str]) {
    let flags = ["rec", "-q", "--title", "first", "--tag", "ticket=12=4", "--tag", "keep"];
    let env = ["--env", "NOTED", "--env", "NOT_THERE", "--env", "SET=secret value"];
    let mut command = home.tapdeck([&flags[..], &env, more, &[file]].concat());
    command.args(["--", "sh", "-c", "echo $SET"]).env("NOTED", "ab c").env("OTHER", "not asked for");
    let out = command.output().expect("it runs");
    assert!(out.status.success(), "{}", text(&out));
    assert_eq!(String::from_utf8_lossy(&out.stdout).trim_end(), "secret value", "SET is the program's");
}

#[test]
fn title_tags_and_variables_are_recorded_shown_and_kept() {
    let home = Home::new();
    record(&home, "a.ahr", &[]);
    let said = meta(&home, "a.ahr");
    assert_eq!(said["tags"], json!({"keep": "", "ticket": "12=4"}));
    assert_eq!(said["env"], json!({"NOTED": "ab c"}), "no variable but the one asked for");
    let info = ok(&home, &["info", "a.ahr"]);
    for line in ["title      first", "tags       keep, ticket=12=4", "env        NOTED=ab c"] {
        assert!(info.contains(line), "{line}: {info}");
    }
    // From format to format, with an edit on the way, and joined.
    ok(&home, &["convert", "a.ahr", "-o", "b.cast", "-q"]);
    ok(&home, &["convert", "b.cast", "-o", "c.ahr", "--speed", "2", "-q"]);
    ok(&home, &["cat", "a.ahr", "c.ahr", "-o", "d.ahr", "-q"]);
    let cast = std::fs::read_to_string(home.path("b.cast")).expect("text");
    let head: Value = serde_json::from_str(cast.lines().next().expect("a header")).expect("JSON");
    assert_eq!((&head["title"], &head["env"]["NOTED"]), (&json!("first"), &json!("ab c")));
    assert_eq!(head["tags"], json!(["keep", "ticket=12=4"]));
    for file in ["c.ahr", "d.ahr"] {
        let kept = meta(&home, file);
        assert_eq!((&kept["title"], &kept["tags"]), (&said["title"], &said["tags"]), "{file}");
        assert_eq!(kept["env"]["NOTED"], "ab c", "{file}");
    }
    // Version 2 has no tags, and says so.
    let lossy = ok(&home, &["convert", "a.ahr", "-o", "e.cast", "--format", "cast-v2", "--json"]);
    assert!(lossy.contains("header"), "{lossy}");
    // Recorded straight into an asciicast.
    record(&home, "f.cast", &[]);
    let info: Value = serde_json::from_str(&ok(&home, &["info", "--json", "f.cast"])).expect("JSON");
    assert_eq!((&info["tags"], &info["env"]["NOTED"]), (&said["tags"], &json!("ab c")));
    refused(&home, &["rec", "--tag", "=x", "g.ahr", "--", "true"], 2, "NAME or NAME=VALUE");
    refused(&home, &["rec", "--tag", "a=b\nc", "g.ahr", "--", "true"], 2, "control characters");
    assert!(!home.path("g.ahr").exists());
}

#[test]
fn scrubbing_masks_tags_and_variables() {
    let home = Home::new();
    let token = "ghp_0123456789abcdefghijABCDEFGHIJ012345";
    let mut command = home.tapdeck(["rec", "-q", "--scrub", "--env", "NOTED", "--tag"]);
    command.arg(format!("t={token}")).args(["a.ahr", "--", "true"]).env("NOTED", token);
    assert!(command.status().expect("it runs").success());
    let said = meta(&home, "a.ahr").to_string();
    assert!(said.contains("NOTED") && !said.contains(token), "{said}");
}

/// The last description of a recording counts, and everything else of it stays as it was.
#[test]
fn title_and_tags_change_later() {
    let home = Home::new();
    std::fs::write(home.path("key"), [7; 32]).expect("written");
    record(&home, "a.ahr", &["--seal", "key"]);
    let before = (meta(&home, "a.ahr"), std::fs::read(home.path("a.ahr")).expect("read"));
    ok(&home, &["recordings", "title", "a.ahr", "second"]);
    ok(&home, &["recs", "tag", "a.ahr", "ticket=5", "new", "--remove", "keep"]);
    assert_eq!(ok(&home, &["recordings", "tag", "a.ahr"]), "new\nticket=5\n");
    let tags: Value =
        serde_json::from_str(&ok(&home, &["recordings", "tag", "--json", "a.ahr"])).expect("JSON");
    assert_eq!(tags["tags"], json!({"new": "", "ticket": "5"}));
    let mut want = before.0;
    want["title"] = json!("second");
    want["tags"] = json!({"new": "", "ticket": "5"});
    assert_eq!(meta(&home, "a.ahr"), want);
    let after = std::fs::read(home.path("a.ahr")).expect("read");
    assert!(after.starts_with(&before.1), "what was recorded stays");
    let verified = ok(&home, &["verify", "--key", "key", "a.ahr"]);
    assert!(verified.contains("seal intact"), "{verified}");
    assert!(verified.contains("added since it was finished, and not sealed: meta.json"), "{verified}");
    // The same again adds nothing.
    ok(&home, &["recordings", "tag", "a.ahr", "new"]);
    assert_eq!(std::fs::read(home.path("a.ahr")).expect("read").len(), after.len());
    ok(&home, &["recordings", "title", "a.ahr", ""]);
    assert_eq!(meta(&home, "a.ahr").get("title"), None);
    // A recording that is continued keeps its title and tags, and may get others.
    record(&home, "b.ahr", &[]);
    ok(&home, &["rec", "-q", "--append", "--tag", "more", "b.ahr", "--", "true"]);
    assert_eq!(ok(&home, &["recordings", "tag", "b.ahr"]), "keep\nmore\nticket=12=4\n");
}

#[test]
fn what_cannot_be_changed_is_refused_and_left_alone() {
    let home = Home::new();
    record(&home, "a.ahr", &[]);
    ok(&home, &["convert", "a.ahr", "-o", "b.cast", "-q"]);
    refused(&home, &["recordings", "title", "b.cast", "x"], 1, "only an .ahr can be given a title");
    refused(&home, &["recordings", "title", "none.ahr", "x"], 3, "none.ahr");
    refused(&home, &["recordings", "title", "a.ahr", "a\x1bb"], 2, "control characters");
    let whole = std::fs::read(home.path("a.ahr")).expect("read");
    std::fs::write(home.path("torn.ahr"), &whole[..whole.len() - 3]).expect("written");
    refused(&home, &["recordings", "tag", "torn.ahr", "x"], 1, "ends within a block");
    assert_eq!(std::fs::read(home.path("torn.ahr")).expect("read"), &whole[..whole.len() - 3]);
    let name = ["rec", "-d", "--name", "busy", "busy.ahr", "--", "cat"];
    ok(&home, &name);
    home.part("busy.ahr", "meta.json");
    refused(&home, &["recordings", "tag", "busy.ahr", "x"], 2, "is being recorded by another process");
    ok(&home, &["kill", "busy"]);
    // An older recording, described by files beside it, has them inside afterwards.
    ok(&home, &["convert", "a.ahr", "-o", "c.ahr", "--sidecar", "-q"]);
    older(&home, "c.ahr", "old.ahr");
    std::fs::rename(home.path("c.meta.json"), home.path("old.meta.json")).expect("renamed");
    ok(&home, &["recordings", "title", "old.ahr", "mended"]);
    let said = meta(&home, "old.ahr");
    assert_eq!((&said["title"], &said["env"]["NOTED"]), (&json!("mended"), &json!("ab c")));
    assert!(!home.path("old.meta.json").exists());
}
