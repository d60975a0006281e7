//! Squads of small agents, with real git.

use std::fs;
use std::process::Output;

use serde_json::Value;
use tapdeck_needs::has;

use crate::support::{Home, Seat, eventually};

const RULES: &str = "[turns]\ncommands = [\"mime.py\"]\nby_state = true\nbrackets = true\nsettle_ms = 40\n\
    answer_within_ms = 2000\nframe = '^agent>'\n\
    [[turns.state]]\nname = \"busy\"\nstate = \"working\"\ntitle = '^busy'\n\
    [[turns.state]]\nname = \"rest\"\nstate = \"idle\"\ntitle = '^rest'\nscreen = ['^agent>']\n";

/// A squad in a home of its own, ended with the test.
struct Squad {
    home: Home,
    name: &'static str,
}

impl Squad {
    /// Writes `squad.toml`, in which `MIME` stands for the agent's command.
    fn new(name: &'static str, text: &str) -> Option<Self> {
        if !has("python3") || !has("git") {
            return None;
        }
        let home = Home::new();
        let agents = home.path(".config/tapdeck/agents");
        fs::create_dir_all(&agents).expect("a folder");
        fs::write(agents.join("mime.toml"), RULES).expect("written");
        let mime = home.path("mime.py");
        fs::write(&mime, include_str!("mime.py")).expect("written");
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        fs::set_permissions(&mime, mode).expect("executable");
        let text = text.replace("MIME", &format!("[\"{}\"]", mime.display()));
        fs::write(home.path("squad.toml"), format!("name = \"{name}\"\n{text}")).expect("written");
        Some(Self { home, name })
    }

    fn run(&self, args: &[&str]) -> Output {
        self.home.run(["squad"].iter().chain(args))
    }

    #[track_caller]
    fn ok(&self, args: &[&str]) -> String {
        let out = self.run(args);
        assert!(out.status.success(), "{args:?}: {}{}", text(&out), self.logs());
        String::from_utf8(out.stdout).expect("text")
    }

    fn logs(&self) -> String {
        text(&self.run(&["logs"]))
    }

    fn status(&self) -> Value {
        serde_json::from_str(&self.ok(&["status", "--json"])).expect("JSON")
    }

    fn agent(&self, name: &str) -> Value {
        let status = self.status();
        let agents = status["agents"].as_array().expect("agents");
        agents.iter().find(|a| a["name"] == name).cloned().unwrap_or_default()
    }

    /// Waits until the log has a line.
    #[track_caller]
    fn logged(&self, line: &str) {
        eventually(&format!("{line:?} in the log"), || self.logs().contains(line));
    }

    fn git(&self, folder: &str, args: &[&str]) -> String {
        let mut command = self.home.command("git");
        command.current_dir(self.home.path(folder)).args(args).env("GIT_CONFIG_GLOBAL", "/dev/null");
        for who in ["AUTHOR", "COMMITTER"] {
            command.env(format!("GIT_{who}_NAME"), "x").env(format!("GIT_{who}_EMAIL"), "x@example.org");
        }
        let out = command.output().expect("git runs");
        assert!(out.status.success(), "{args:?}: {}", text(&out));
        String::from_utf8(out.stdout).expect("text")
    }

    /// The folder of this test becomes a repository with one commit.
    fn repository(&self) {
        self.git("", &["init", "-q", "-b", "main"]);
        fs::write(self.home.path(".gitignore"), "*\n!base.txt\n!work.txt\n").expect("written");
        fs::write(self.home.path("base.txt"), "base\n").expect("written");
        self.git("", &["add", "base.txt"]);
        self.git("", &["add", "-f", ".gitignore"]);
        self.git("", &["commit", "-q", "-m", "base"]);
    }
}

impl Drop for Squad {
    fn drop(&mut self) {
        self.run(&["down", self.name]);
    }
}

fn text(out: &Output) -> String {
    String::from_utf8_lossy(&out.stdout).into_owned() + &String::from_utf8_lossy(&out.stderr)
}

#[test]
fn a_reviewers_remarks_go_back_until_it_approves() {
    let Some(squad) = Squad::new(
        "pair",
        "[agents.writer]\ncommand = MIME\nenv = { ROLE = 'writer' }\nprompt = 'write it'\n\
         [agents.reviewer]\ncommand = MIME\nenv = { ROLE = 'reviewer' }\nafter = ['writer:idle']\n\
         [[relay]]\nfrom = 'writer'\nto = 'reviewer'\nbefore = 'Review this:'\n\
         [[relay]]\nfrom = 'reviewer'\nto = 'writer'\nbefore = 'A reviewer says:'\nuntil = 'APPROVED'\n",
    ) else {
        return;
    };
    assert!(squad.ok(&["up", "-d"]).contains("pair/writer runs as session"));
    squad.logged("relay to writer ends: reviewer said APPROVED");
    eventually("the end of the relays", || squad.status()["relays"][1]["ended"].is_string());
    let status = squad.status();
    assert_eq!((&status["relays"][0]["rounds"], &status["relays"][1]["rounds"]), (&2.into(), &1.into()));
    assert_eq!(squad.agent("writer")["prompt"], "answered");
    assert_eq!(squad.agent("reviewer")["prompt"], Value::Null, "it has none");
    let said = squad.ok(&["status"]);
    assert!(said.contains("relay 1: writer to reviewer, 2 of 5 rounds, ended: "), "{said}");
    assert!(
        said.contains("relay 2: reviewer to writer, 1 of 5 rounds, ended: reviewer said APPROVED"),
        "{said}"
    );
    let asked = text(&squad.home.run(["turns", "show", "pair/writer:2", "--json"]));
    assert!(asked.contains("A reviewer says:") && asked.contains("please fix line 7"), "{asked}");
    // up is for what does not run: nothing is started or asked twice.
    let (before, sessions) = (squad.agent("writer")["session"].clone(), status["supervisor"].clone());
    squad.ok(&["up", "-d"]);
    assert_eq!(squad.agent("writer")["session"], before);
    assert_ne!(squad.status()["supervisor"], sessions, "the new supervisor has taken over");
    assert_eq!(squad.logs().matches("got the first prompt").count(), 1, "{}", squad.logs());
    // One that was killed is started again, and its recording continues the one before.
    let recording = squad.agent("writer")["recording"].as_str().expect("a recording").to_owned();
    assert!(squad.home.run(["kill", "pair/writer"]).status.success());
    squad.logged("writer: ended");
    squad.ok(&["up", "-d"]);
    let writer = squad.agent("writer");
    assert_eq!(writer["earlier_recordings"][0], recording.as_str());
    let info = ["info", writer["recording"].as_str().expect("a recording")];
    let continues = format!("continues  {recording}");
    eventually(&continues, || text(&squad.home.run(info)).contains(&continues));
    assert!(squad.ok(&["down"]).contains("pair/reviewer: ended"));
    assert_eq!(squad.status()["supervisor"], Value::Null);
    assert_eq!(text(&squad.home.run(["ls", "-q"])), "");
}

#[test]
fn several_work_in_worktrees_and_a_judge_names_one() {
    let worker = "command = MIME\nenv = { ROLE = 'worker' }\nprompt = 'do the task'\nworktree =";
    let Some(squad) = Squad::new(
        "fan",
        &format!(
            "recordings = 'recs'\n[agents.one]\n{worker} true\n[agents.two]\n{worker} 'second'\n\
             [agents.judge]\ncommand = MIME\nenv = {{ ROLE = 'judge' }}\nafter = ['one:answered']\n\
             [vote]\nagents = ['one', 'two']\njudge = 'judge'\nbefore = 'Judge these:'\n"
        ),
    ) else {
        return;
    };
    squad.repository();
    squad.ok(&["up", "-d"]);
    squad.logged("vote: judge names two");
    eventually("the result", || squad.status()["vote"]["best"] == "two");
    let answer = text(&squad.home.run(["turns", "show", "fan/judge"]));
    assert!(answer.contains("seen 2 answers and 2 lines"), "answers and diffs: {answer}");
    assert!(squad.git("", &["branch", "--list"]).contains("second"));
    let folder = squad.agent("one")["folder"].as_str().expect("a folder").to_owned();
    assert_eq!(fs::read_to_string(format!("{folder}/work.txt")).expect("read"), "new\n");
    assert!(!squad.home.path("work.txt").exists(), "each works in a folder of its own");
    assert_eq!(
        fs::read_dir(squad.home.path("recs"))
            .expect("recordings")
            .flatten()
            .filter(|e| e.path().extension().is_some_and(|end| end == "ahr"))
            .count(),
        3
    );
    // Work that would be lost is kept: first what is not committed, then what is not merged.
    let kept = squad.run(&["down", "--worktrees"]);
    assert_eq!(kept.status.code(), Some(1), "{}", text(&kept));
    assert!(text(&kept).contains("it has uncommitted changes"), "{}", text(&kept));
    squad.git(&folder, &["add", "work.txt"]);
    squad.git(&folder, &["commit", "-q", "-m", "work"]);
    fs::remove_file(format!("{}/work.txt", squad.agent("two")["folder"].as_str().expect("a folder")))
        .expect("removed");
    let kept = squad.run(&["down", "--worktrees"]);
    assert!(text(&kept).contains("branch tapdeck/fan/one has 1 unmerged commit"), "{}", text(&kept));
    assert!(text(&kept).contains("two: removed worktree"), "{}", text(&kept));
    squad.git("", &["merge", "-q", "tapdeck/fan/one"]);
    squad.ok(&["down", "--worktrees"]);
    assert_eq!(squad.git("", &["worktree", "list"]).lines().count(), 1);
    assert_eq!(squad.git("", &["branch", "--list"]).trim(), "* main");
}

#[test]
fn what_fails_is_restarted_and_given_up() {
    let Some(squad) = Squad::new(
        "frail",
        "[agents.frail]\ncommand = MIME\nprompt = 'crash'\nrestart = 'on-failure'\nrestart_limit = 1\n\
         [agents.quick]\ncommand = ['true']\nrestart = 'on-failure'\nrecord = false\n\
         [agents.next]\ncommand = ['sh', '-c', 'kill -TERM $$; sleep 60']\nafter = ['quick:done']\n\
         [agents.never]\ncommand = ['true']\nafter = ['next:done']\n\
         [agents.missing]\ncommand = ['/no/such/program']\n",
    ) else {
        return;
    };
    // In the foreground it ends when all have ended.
    let out = squad.run(&["up"]);
    let said = text(&out);
    assert_eq!(out.status.code(), Some(1), "{said}");
    for line in [
        "frail: ended: exit 3",
        "frail: restart 1 of 1 in 1 s",
        "frail: given up after 1 restarts",
        "quick: ended: exit 0",
        // The signals of the supervisor are not those of its agents.
        "next: ended: signal TERM",
        "never: never started",
        "missing: cannot be started: ",
        "squad: all agents have ended",
    ] {
        assert!(said.contains(line), "{line:?} in {said}");
    }
    assert_eq!(said.matches("frail: started").count(), 2, "{said}");
    assert_eq!(squad.agent("frail")["restarts"], 1);
    assert_eq!(squad.agent("quick")["state"], "exit 0");
}

/// What cannot be started is told by the command that was to start it, also in the background.
#[test]
fn what_cannot_be_started_is_told_in_the_background_too() {
    let Some(squad) = Squad::new("bad", "[agents.writer]\ncommand = ['/no/such/program']\n") else { return };
    let out = squad.run(&["up", "-d"]);
    let said = text(&out);
    assert_eq!(out.status.code(), Some(1), "{said}");
    assert!(said.contains("bad/writer cannot be started: "), "{said}");
    assert_eq!(squad.agent("writer")["recording"], Value::Null);
}

#[test]
fn a_reboot_is_survived() {
    let Some(squad) = Squad::new(
        "boot",
        "[agents.a]\ncommand = MIME\nresume = ['sh', '-c', 'echo resumed; exec sleep 600']\nprompt = 'hello'\n",
    ) else {
        return;
    };
    squad.ok(&["up", "-d"]);
    squad.logged("a: has answered its first prompt");
    let (supervisor, a) = (squad.status()["supervisor"].as_i64().expect("a process"), squad.agent("a"));
    let host: i64 = a["session"].as_str().and_then(|id| id.parse().ok()).expect("a process");
    for pid in [supervisor, host] {
        let pid = rustix::process::Pid::from_raw(i32::try_from(pid).expect("a pid")).expect("a pid");
        rustix::process::kill_process(pid, rustix::process::Signal::KILL).expect("killed");
    }
    eventually("the end of both", || {
        squad.agent("a")["state"] == "gone" && squad.status()["supervisor"].is_null()
    });
    squad.ok(&["up", "-d"]);
    let again = squad.agent("a");
    assert_eq!(again["earlier_recordings"][0], a["recording"]);
    assert_eq!(again["prompt"], "answered", "it is not asked again");
    eventually("the resumed program", || text(&squad.home.run(["peek", "boot/a"])).contains("resumed"));
}

#[test]
fn the_board_is_the_dashboard_of_one_squad() {
    let Some(squad) = Squad::new("board", "[agents.a]\ncommand = MIME\n") else { return };
    squad.ok(&["up", "-d"]);
    assert!(squad.home.run(["run", "-d", "--name", "stranger", "--", "sleep", "600"]).status.success());
    let mut seat = Seat::with_size(squad.home.tapdeck(["squad", "board"]), 100, 30);
    seat.wait_text("board/a");
    seat.wait_text("agent>");
    assert!(!seat.screen().contains("stranger"), "{}", seat.screen());
    seat.send("q");
    seat.end();
    assert!(squad.home.run(["kill", "stranger"]).status.success());
    // A session of a squad can be named wherever a file could be.
    let mut seat = Seat::with_size(squad.home.tapdeck(["view", "board/a"]), 100, 30);
    seat.wait_text("agent>");
    seat.send("qy");
    seat.end();
}

#[test]
fn mistakes_in_the_file_are_named() {
    let home = Home::new();
    for (file, message) in [
        ("[agents.a]\ncomand = ['x']\n", "squad.toml:2: unknown key \"comand\"; keys: "),
        ("[agents.a]\ncomand = ['x']\n", "did you mean \"command\"?"),
        ("name = 'x'\n[agents.a]\ncommand = ['x']\nafter = ['b']\n", "squad.toml:4: there is no agent \"b\""),
    ] {
        fs::write(home.path("squad.toml"), file).expect("written");
        let out = home.run(["squad", "up"]);
        assert_eq!(out.status.code(), Some(2), "{}", text(&out));
        assert!(text(&out).contains(message), "{message} in {}", text(&out));
    }
    fs::remove_file(home.path("squad.toml")).expect("removed");
    let out = home.run(["squad", "status"]);
    assert_eq!(
        (out.status.code(), text(&out).contains("tapdeck squad init")),
        (Some(3), true),
        "{}",
        text(&out)
    );
    for recipe in ["review", "fan-out"] {
        let out = home.run(["squad", "init", recipe, "--overwrite"]);
        assert!(out.status.success(), "{}", text(&out));
        let unit = home.run(["squad", "unit"]);
        assert!(unit.status.success() && text(&unit).contains("squad up"), "{}", text(&unit));
    }
}
