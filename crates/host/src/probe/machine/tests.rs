//! Flows against screens that answer as the agents do, without a program and without a clock.

use std::time::Duration;

use tapdeck_core::Time;
use tapdeck_term::Size;

use super::super::flow::agent;
use super::*;

/// A screen that answers: pieces of output with the time at which they come, and what must have
/// been sent before each.
fn play(
    name: &str,
    probe: &str,
    script: &[(&str, &str)],
    exits: bool,
) -> (Status, String, Facts, Vec<String>) {
    let agent = agent(name, None).expect("an agent");
    let probe = agent.probe(probe).expect("a probe");
    let mut machine = Machine::new(&agent, &probe);
    let mut model = Model::new(Size::new(agent.cols, agent.rows));
    let (mut now, mut next, mut sent) = (Time::ZERO, 0, Vec::<String>::new());
    while machine.result().is_none() && now < Time::from_secs(200) {
        if let Some((after, output)) = script.get(next)
            && (after.is_empty() || sent.last().is_some_and(|s| s == after))
        {
            model.output(output.as_bytes());
            sent.push(String::new());
            next += 1;
        }
        match machine.look(now, &model) {
            Some(Action::Send(bytes)) => {
                let text = String::from_utf8_lossy(&bytes).into_owned();
                if key_of(&text).is_none() && !text.starts_with(['\r', '\t']) {
                    // What is typed is echoed.
                    model.output(&bytes);
                }
                sent.push(text);
            }
            Some(Action::Finish) => break,
            None => {}
        }
        if exits && next == script.len() && now > Time::from_secs(1) {
            machine.exited(&model);
        }
        now += Duration::from_millis(50);
    }
    let (status, detail) = machine.result().map(|(s, d)| (s, d.to_owned())).expect("a result");
    sent.retain(|s| !s.is_empty());
    (status, detail, machine.facts().clone(), sent)
}

const USAGE: &str = "\x1b[2J\x1b[H Settings:  Status   Config   Usage\r\n\r\n Claude Max plan\r\n\r\n\
    Current session\r\n ███▌   7% used\r\n Resets 3pm (UTC)\r\n\r\n\
    Current week (all models)\r\n █████  94.5% used\r\n Resets Mar 4, 1pm (UTC)\r\n\r\n\
    Current week (Sonnet only)\r\n <1% used\r\n";

#[test]
fn claude_quota_with_a_dialog_in_the_way() {
    let script = [
        ("", "Do you trust the files in this folder?\r\n ❯ 1. Yes, proceed\r\n"),
        ("\r", "\x1b[2J\x1b[H Welcome\r\n 88% used\r\n❯ "),
        ("\r", USAGE),
    ];
    let (status, detail, facts, sent) = play("claude", "quota", &script, false);
    assert_eq!((status, detail.as_str()), (Status::Ok, "read off its screen"));
    assert_eq!(sent, ["\r", "/usage", "\r"]);
    let seen: Vec<_> =
        facts.windows.iter().map(|w| (w.limit_id.as_str(), w.used_percent, w.state.as_str())).collect();
    assert_eq!(
        seen,
        [("session", Some(7.0), "ok"), ("week", Some(94.5), "blocked"), ("week_sonnet", Some(1.0), "ok")]
    );
    assert_eq!(facts.windows[0].resets_at.as_deref(), Some("3pm (UTC)"));
    assert_eq!(facts.windows[2].resets_at, None, "that of another window is not taken");
    assert_eq!(facts.plan.as_deref(), Some("max"));
}

/// A trust dialog once chose "No, exit" by default, and Enter ended the agent.
#[test]
fn the_right_row_of_a_menu_is_chosen() {
    let menu = |mark: usize| {
        let row = |i, text| format!(" {} {text}\r\n", if i == mark { "❯" } else { " " });
        format!(
            "\x1b[2J\x1b[HIs this a project you trust?\r\n{}{}",
            row(0, "No, exit"),
            row(1, "Yes, I trust this folder")
        )
    };
    let (first, second) = (menu(0), menu(1));
    let script =
        [("", first.as_str()), ("\x1b[B", second.as_str()), ("\r", "\x1b[2J\x1b[H❯ "), ("\r", USAGE)];
    let (status, detail, _, sent) = play("claude", "quota", &script, false);
    assert_eq!(status, Status::Ok, "{detail}");
    assert_eq!(sent, ["\x1b[B", "\r", "/usage", "\r"]);
}

/// Gemini CLI showed its prompt for a moment, then asked for trust in the place of the command, and
/// started anew.
#[test]
fn a_command_that_was_lost_is_sent_again() {
    let ready = "\x1b[2J\x1b[H >   Type your message or @path/to/file\r\n";
    let trust = "\x1b[2J\x1b[HDo you trust the files in this folder?\r\n ● 1. Trust folder (x)\r\n";
    let panel = "│ Select Model\r\n│ Model usage\r\n│ Pro   ▬▬▬   1%  Resets: 9 AM\r\n";
    let script = [("", ready), ("/model manage", trust), ("\r", ready), ("\r", panel)];
    let (status, detail, _, sent) = play("gemini", "quota", &script, false);
    assert_eq!(status, Status::Ok, "{detail}");
    assert_eq!(sent, ["/model manage", "\r", "/model manage", "\r"]);
    // It never comes to a panel: that is said, after some tries and no more.
    let script = [("", ready), ("\r", ready), ("\r", ready), ("\r", ready), ("\r", ready)];
    let (status, detail, _, sent) = play("gemini", "quota", &script, false);
    assert_eq!((status, sent.len()), (Status::Error, 8), "{detail}");
}

/// A panel that was there before the command once satisfied the wait.
#[test]
fn a_stale_panel_never_satisfies() {
    let stale = format!("{USAGE}\r\n❯ ");
    let (status, detail, facts, sent) = play("claude", "quota", &[("", stale.as_str())], false);
    assert_eq!(status, Status::Error, "{detail}");
    assert!(detail.contains("not complete") && detail.contains("session"), "{detail}");
    assert_eq!((facts, sent.len()), (Facts::default(), 2));
}

/// A half-drawn panel was once parsed.
#[test]
fn a_half_drawn_panel_is_waited_for() {
    let (first, rest) = USAGE.split_at(USAGE.find("Current week (all").expect("there"));
    let script = [("", "❯ "), ("\r", first), ("", rest)];
    let (status, _, facts, _) = play("claude", "quota", &script, false);
    assert_eq!((status, facts.windows.len()), (Status::Ok, 3));
    let (status, detail, ..) = play("claude", "quota", &script[..2], false);
    assert_eq!(status, Status::Error);
    assert!(detail.contains("week missing") || detail.contains("week"), "{detail}");
}

#[test]
fn who_is_not_signed_in_is_told_apart() {
    let cases = [
        ("claude", "Not logged in · Please run /login\r\n❯ ", Status::Unauthenticated),
        ("claude", "Select login method:\r\n ❯ 1. Claude account\r\n", Status::Unauthenticated),
        ("codex", "Sign in with ChatGPT to use Codex\r\n> 1. Sign in\r\n", Status::Unauthenticated),
    ];
    for (name, screen, want) in cases {
        let (status, detail, ..) = play(name, "quota", &[("", screen)], false);
        assert_eq!(status, want, "{screen}: {detail}");
    }
    let (status, ..) = play(
        "claude",
        "quota",
        &[("", "Opus · API Usage Billing\r\n❯ "), ("\r", "Total cost: $0\r\n")],
        false,
    );
    assert_eq!(status, Status::Unavailable);
    // False friends are healthy: the probe goes on, and is only missing its panel here.
    for screen in ["Authenticated with OAuth, sign in to none\r\n❯ ", "cwd: /tmp/sign in to/project\r\n❯ "]
    {
        let (status, detail, ..) = play("claude", "quota", &[("", screen)], false);
        assert_eq!(status, Status::Error, "{screen}: {detail}");
    }
    let (status, detail, ..) =
        play("claude", "quota", &[("", "Unable to connect to Anthropic services\r\n")], true);
    assert_eq!(status, Status::Unavailable, "{detail}");
    let (status, detail, ..) = play("claude", "quota", &[("", "Segmentation fault\r\n")], true);
    assert_eq!(status, Status::Error);
    assert!(detail.contains("Segmentation fault"), "{detail}");
}

#[test]
fn codex_quota_models_and_levels() {
    let panel = "› /status\r\n│ Account: me@example.org (Plus) │\r\n\
        │ 5h limit:     [███░] 76% left (resets 14:20) │\r\n│ Weekly limit: less than 5% left (resets 1 Mar) │\r\n";
    let (status, detail, facts, sent) = play("codex", "quota", &[("", "› "), ("\r", panel)], false);
    assert_eq!(status, Status::Ok, "{detail}");
    assert_eq!(sent, ["/status", "\r"]);
    let seen: Vec<_> =
        facts.windows.iter().map(|w| (w.used_percent, w.resets_at.as_deref(), w.state.as_str())).collect();
    assert_eq!(seen, [(Some(24.0), Some("14:20"), "ok"), (Some(95.0), Some("1 Mar"), "blocked")]);
    assert_eq!(facts.plan.as_deref(), Some("plus"));
    let menu = "Select Model\r\n› 1. gpt-5.2-codex  (current)\r\n  2. GPT-6.1 Terra  A model.\r\n ↓\r\n";
    let rest = "\x1b[2J\x1b[HSelect Model\r\n  2. GPT-6.1 Terra  A model.\r\n› 3. gpt-5-mini\r\n";
    let script = [("", "› "), ("\r", menu), ("\x1b[B", rest)];
    let (status, detail, facts, _) = play("codex", "models", &script, false);
    assert_eq!(facts.models, ["gpt-5.2-codex", "GPT-6.1 Terra", "gpt-5-mini"], "{detail}");
    assert_eq!(status, Status::Ok);
    let levels = "\x1b[2J\x1b[HSelect Reasoning Level\r\n  1. Low\r\n› 2. Medium (default)\r\n  3. High\r\n";
    let script = [("", "› "), ("\r", menu), ("\r", levels)];
    let (status, detail, facts, _) = play("codex", "reasoning", &script, false);
    assert_eq!(
        (status, facts.reasoning),
        (Status::Ok, vec!["low".into(), "medium".into(), "high".into()]),
        "{detail}"
    );
}

#[test]
fn gemini_quota_and_models() {
    let ready = " >   Type your message or @path/to/file\r\n";
    let head = "\x1b[2J\x1b[H > /model manage\r\n│ Select Model\r\n│ ● 1. Auto\r\n│   2. Manual\r\n";
    let usage = "│ Model usage\r\n\
        │ Flash                     ▬▬▬▬▬▬▬▬▬▬▬▬   25%  Resets: 1:30 PM (1h 30m) │\r\n\
        │ Flash Lite                ▬▬▬▬▬▬▬▬▬▬▬▬   2%   Resets: 1:30 PM (1h 30m) │\r\n\
        │ Pro                       ▬▬▬▬▬▬▬▬▬▬▬▬   96%                           │\r\n";
    let script = [("", ready), ("\r", head), ("", usage)];
    let (status, detail, facts, sent) = play("gemini", "quota", &script, false);
    assert_eq!((status, sent.join(" ")), (Status::Ok, "/model manage \r".into()), "{detail}");
    let seen: Vec<_> = facts
        .windows
        .iter()
        .map(|w| (w.limit_id.as_str(), w.used_percent, w.resets_at.as_deref(), w.state.as_str()))
        .collect();
    let resets = Some("1:30 PM (1h 30m)");
    assert_eq!(
        seen,
        [
            ("flash_lite", Some(2.0), resets, "ok"),
            ("flash", Some(25.0), resets, "ok"),
            ("pro", Some(96.0), None, "blocked")
        ]
    );
    // With a key of one's own nothing is counted, and the panel never tells.
    let (status, detail, ..) = play("gemini", "quota", &script[..2], false);
    assert_eq!(status, Status::Unavailable, "{detail}");
    let chosen = "\x1b[2J\x1b[H > /model manage\r\n│ Select Model\r\n│   1. Auto\r\n│ ● 2. Manual\r\n";
    let list = "\x1b[2J\x1b[H│ ● 1. gemini-3-pro\r\n│   2. gemma-4-31b-it\r\n│ > To use a specific model\r\n";
    let script = [("", ready), ("\r", head), ("\x1b[B", chosen), ("\r", list)];
    let (status, detail, facts, _) = play("gemini", "models", &script, false);
    assert_eq!(
        (status, facts.models.join(" ").as_str()),
        (Status::Ok, "gemini-3-pro gemma-4-31b-it"),
        "{detail}"
    );
}

#[test]
fn claude_levels_come_from_its_help() {
    let help = "  --effort <level>   Effort level for the current session\r\n                     (low, medium, high)\r\n";
    let (status, detail, facts, sent) = play("claude", "reasoning", &[("", help)], true);
    assert_eq!(
        (status, facts.reasoning),
        (Status::Ok, vec!["low".into(), "medium".into(), "high".into()]),
        "{detail}"
    );
    assert!(sent.is_empty());
    let (status, ..) = play("claude", "reasoning", &[("", "unknown option\r\n")], true);
    assert_eq!(status, Status::Error, "nothing is made up");
}
