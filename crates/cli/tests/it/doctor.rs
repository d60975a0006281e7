//! `tapdeck doctor`: what works here, and what does not.

use std::os::unix::fs::PermissionsExt;

use crate::support::Home;

#[test]
fn the_doctor_tries_things_and_says_what_fails() {
    let home = Home::new();
    let bin = home.path("bin");
    std::fs::create_dir(&bin).expect("made");
    std::fs::write(bin.join("codex"), "#!/bin/sh\n").expect("written");
    std::fs::set_permissions(bin.join("codex"), std::fs::Permissions::from_mode(0o755)).expect("set");
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap_or_default());
    let ask = |vars: &[(&str, &str)]| {
        let mut command = home.tapdeck(["doctor", "--json"]);
        // Nothing of this machine's: an engine that does not answer, no agent.
        command.env("PATH", &path).env("LANG", "C.UTF-8").env("DOCKER_HOST", "unix:///nonexistent/engine");
        command
            .env_remove("SSH_AUTH_SOCK")
            .env_remove("LC_ALL")
            .env_remove("LC_CTYPE")
            .envs(vars.iter().copied());
        let out = command.output().expect("it runs");
        let found: Vec<serde_json::Value> = serde_json::from_slice(&out.stdout).expect("JSON");
        let of = |check: &str| {
            let found = found.iter().find(|f| f["check"] == check).expect(check);
            (
                found["verdict"].as_str().expect("text").to_owned(),
                found["says"].as_str().expect("text").to_owned(),
            )
        };
        (
            out.status.code(),
            ["programs", "sockets", "recordings", "settings", "rules", "agents", "locale", "containers"]
                .map(of),
        )
    };
    let (code, [programs, sockets, recordings, settings, rules, agents, locale, containers]) = ask(&[]);
    assert_eq!(code, Some(0));
    for (verdict, says) in [&programs, &sockets, &recordings, &settings, &rules, &agents, &locale] {
        assert_eq!(verdict, "fine", "{says}");
    }
    // The machine may have other agents, too.
    let found: Vec<&str> = agents.1.split(", ").collect();
    assert!(found.contains(&bin.join("codex").to_str().expect("text")), "{found:?}");
    assert_eq!(containers.0, "absent", "an engine is needed by few");

    let wrong = home.path("wrong.toml");
    std::fs::write(&wrong, "[hooks]\nbel = true\n").expect("written");
    let long = home.path(&"long/".repeat(30));
    let cases = [
        (
            "TAPDECK_CONFIG",
            wrong.display().to_string(),
            3,
            "fails",
            "wrong.toml:2: [hooks] has no setting \"bel\"; did you mean \"bell\"?",
        ),
        ("XDG_RUNTIME_DIR", long.display().to_string(), 1, "fails", "long/long"),
        ("XDG_STATE_HOME", "/proc/nowhere".to_owned(), 2, "fails", "/proc"),
        ("LC_ALL", "C".to_owned(), 6, "look", "UTF-8"),
    ];
    for (name, value, which, verdict, says) in cases {
        let (code, found) = ask(&[(name, &value)]);
        assert_eq!(code, Some(i32::from(verdict == "fails")), "{name}: {found:?}");
        assert_eq!(found[which].0, verdict, "{name}: {found:?}");
        assert!(found[which].1.contains(says), "{name}: {found:?}");
    }
    // A user who only wants a session is warned as well, and gets it.
    let out =
        home.tapdeck(["run", "--", "echo", "here"]).env("TAPDECK_CONFIG", &wrong).output().expect("it runs");
    assert!(String::from_utf8_lossy(&out.stdout).contains("here"), "{out:?}");
    assert!(String::from_utf8_lossy(&out.stderr).contains("wrong.toml:2: "), "{out:?}");
    // A recording might lack what the user has asked for, so it does not begin.
    let out = home
        .tapdeck(["rec", "x.ahr", "--", "echo", "here"])
        .env("TAPDECK_CONFIG", &wrong)
        .output()
        .expect("it runs");
    assert_eq!(out.status.code(), Some(2), "{out:?}");
    assert!(String::from_utf8_lossy(&out.stderr).contains("wrong.toml:2: "), "{out:?}");
    assert!(!home.path("x.ahr").exists());
}
