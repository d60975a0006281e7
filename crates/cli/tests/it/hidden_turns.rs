//! A conversation in the alternate screen, which leaves no lines behind: it is in the exports and a
//! search finds it.

use std::fs;

use crate::support::{Home, Seat, eventually};

const RULES: &str = "[turns]\ncommands = [\"parrot\"]\nby_state = true\nsettle_ms = 40\n\
    answer_within_ms = 2000\nframe = '^parrot>'\n\
    [[turns.state]]\nname = \"busy\"\nstate = \"working\"\ntitle = '^busy'\n\
    [[turns.state]]\nname = \"rest\"\nstate = \"idle\"\ntitle = '^rest'\nscreen = ['^parrot>']\n";
/// Says each line twice, on a screen of its own that begins anew with each answer.
const PARROT: &str = "#!/bin/sh\nprintf '\\033[?1049h\\033[H'\n\
    while printf '\\033]0;rest\\a\\nparrot> '; read x; do\n\
    printf '\\033]0;busy\\a\\033[H\\033[J'; sleep 0.3; echo \"answer: $x $x\"; done\n\
    printf '\\033[?1049l'\n";

/// A recorded shell in which a parrot was talked to.
fn conversation(home: &Home) {
    let agents = home.path(".config/tapdeck/agents");
    fs::create_dir_all(&agents).expect("a folder");
    fs::write(agents.join("parrot.toml"), RULES).expect("written");
    fs::write(home.path("parrot"), PARROT).expect("written");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(home.path("parrot"), mode).expect("executable");
    let ok = |args: &[&str]| {
        let out = home.run(args);
        assert!(out.status.success(), "{args:?}: {}", String::from_utf8_lossy(&out.stderr));
    };
    ok(&["rec", "-d", "--name", "shell", "talk.ahr", "--", "bash", "--norc"]);
    let say = |text: &str, then: &str| {
        ok(&["wait", "shell", "--state", "idle", "--timeout", "30"]);
        match text.split_whitespace().count() {
            // A prompt: the parrot must have shown it before Enter.
            1 => ok(&["paste", "shell", text, "--timeout", "30"]),
            _ => ok(&["type", "shell", text, "--enter"]),
        }
        ok(&["wait", "shell", "--text", then, "--timeout", "30"]);
    };
    let explained = |by: &str| eventually(by, || stdout(home, &["explain", "shell"]).contains(by));
    say("echo be$((1))fore", "be1fore");
    say(" ./parrot ; true", "parrot>$");
    explained("parrot: rest");
    say("tapir", "answer: tapir tapir");
    say("quokka", "answer: quokka quokka");
    say("numbat", "answer: numbat numbat");
    ok(&["wait", "shell", "--state", "idle", "--timeout", "30"]);
    ok(&["send", "shell", "C-d"]);
    explained("rules     shell");
    say("echo af$((1))ter", "af1ter");
    ok(&["wait", "shell", "--state", "idle", "--timeout", "30"]);
    ok(&["type", "shell", "exit", "--enter"]);
    eventually("the end of the recording", || home.is_finished("talk.ahr"));
}

fn stdout(home: &Home, args: &[&str]) -> String {
    let out = home.run(args);
    assert!(out.status.success(), "{args:?}: {}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8(out.stdout).expect("text")
}

#[test]
fn every_text_has_the_conversation_once_and_in_order() {
    let home = Home::new();
    conversation(&home);
    for args in [
        &["play", "--fast", "--color", "never", "talk.ahr"][..],
        &["convert", "-q", "talk.ahr", "-o", "-", "--format", "txt"],
        &["convert", "-q", "talk.ahr", "-o", "-", "--format", "md"],
        &["convert", "-q", "talk.ahr", "-o", "-", "--format", "csv"],
        &["branch-points", "talk.ahr"],
        &["branch-points", "talk.ahr", "--format", "json"],
        &["branch-points", "talk.ahr", "--format", "csv"],
    ] {
        let text = stdout(&home, args).replace('\\', "");
        let at = |part: &str| {
            assert_eq!(text.matches(part).count(), 1, "{part:?} in {args:?}:\n{text}");
            text.find(part)
        };
        let order =
            ["be1fore", "answer: tapir tapir", "answer: quokka quokka", "answer: numbat numbat", "af1ter"];
        assert!(order.map(at).is_sorted(), "{args:?}:\n{text}");
    }
    let json = stdout(&home, &["convert", "-q", "talk.ahr", "-o", "-", "--format", "json"]);
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(json["turns"].as_array().expect("turns").len(), 3, "{}", json["turns"]);
    assert_eq!(json["turns"][0]["input"], "tapir");
    let page = stdout(&home, &["convert", "-q", "talk.ahr", "-o", "-", "--format", "html"]);
    let (_, transcript) = page.split_once("id=\"transcript\"").expect("a transcript");
    assert!(transcript.contains("answer: quokka quokka"), "{transcript}");
    // The bytes of a recording in another format stay what they are.
    let cast = stdout(&home, &["convert", "-q", "talk.ahr", "-o", "-", "--format", "cast"]);
    assert!(!cast.contains("--- turn"), "{cast}");
}

#[cfg(feature = "tui")]
#[test]
fn a_search_goes_on_in_the_turns() {
    let home = Home::new();
    conversation(&home);
    let mut seat = Seat::with_size(home.tapdeck(["view", "--search", "answer: ", "talk.ahr"]), 100, 40);
    // In no row at the end, so the first turn with a match is shown.
    seat.wait_text("turn 2: answer: tapir tapir");
    let in_rows = |s: &Seat, text: &str| s.screen().lines().filter(|line| line.contains(text)).count() >= 2;
    seat.wait("the screen of that time", |s| in_rows(s, "answer: tapir tapir"));
    seat.send("n");
    seat.wait("the next turn", |s| in_rows(s, "answer: quokka quokka"));
    seat.send("n");
    seat.wait("the last turn", |s| in_rows(s, "answer: numbat numbat"));
    seat.send("N");
    seat.wait("the one before", |s| in_rows(s, "answer: quokka quokka"));
    seat.send("n");
    seat.wait("the last turn again", |s| in_rows(s, "answer: numbat numbat"));
    seat.send("n");
    seat.wait("back at the end", |s| s.screen().contains("af1ter") && s.screen().contains("■ END"));
    // What is in the rows is found there first, and what is nowhere is said to be.
    seat.send("/be1fore\r");
    seat.wait_text("1 of 1 found");
    seat.send("/platypus\r");
    seat.wait_text("not found: platypus");
    seat.send("/quokka\r");
    seat.wait_text("turn 3: ");
    seat.send("q");
    assert_eq!(seat.end().code(), Some(0));
}
