//! Going back: the files of a session are kept at every turn, and a session is branched from there.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;
use tapdeck_needs::{has, skip};

use crate::support::{Home, eventually};

/// An agent with a prompt, which edits the files of its folder as it is told: each prompt is a line
/// of shell. It puts a copy of the folder aside when it is done.
const AGENT: &str = r#"#!/bin/bash
n=0
while printf 'agent> ' && IFS= read -r line; do
  n=$((n + 1)); eval "$line"
  mkdir -p "$COPIES"; cp -a . "$COPIES/$n"; echo "done $n"
done
"#;

/// A user with a repository, and an agent.
struct User(Home);

impl User {
    fn new() -> Option<Self> {
        if !has("git") || !has("bash") {
            skip("git and bash");
            return None;
        }
        let user = Self(Home::new());
        fs::create_dir(user.0.path("project")).expect("made");
        fs::write(user.0.path("agent"), AGENT).expect("written");
        fs::set_permissions(user.0.path("agent"), fs::Permissions::from_mode(0o755)).expect("set");
        Some(user)
    }

    fn git(&self, args: &[&str]) -> String {
        let mut git = self.0.command("git");
        let own = ["user.name=u", "user.email=u@localhost", "commit.gpgSign=false", "core.fsmonitor=false"];
        // What a test asks runs no hooks, and changes no index.
        let own = own.into_iter().chain(["core.hooksPath=/dev/null"]).flat_map(|setting| ["-c", setting]);
        git.env("GIT_OPTIONAL_LOCKS", "0").env("GIT_CONFIG_GLOBAL", "/dev/null");
        let out = git.current_dir(self.0.path("project")).args(own).args(args).output();
        let out = out.expect("git runs");
        assert!(out.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&out.stderr));
        String::from_utf8_lossy(&out.stdout).into_owned()
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.0.path("project").join(name), text).expect("written");
    }

    fn rec(&self, args: &[&str]) -> Command {
        let mut rec = self.0.tapdeck(["rec", "--prompt", "^agent> $", "--cwd", "project"]);
        rec.env("COPIES", self.0.path("copies")).args(args);
        rec
    }

    fn start(&self, args: &[&str]) -> Command {
        let mut all = vec!["-d", "--name", "agent", "--snapshots", "git"];
        all.extend(args);
        all.extend(["s.ahr", "--"]);
        let mut rec = self.rec(&all);
        rec.arg(self.0.path("agent"));
        rec
    }

    #[track_caller]
    fn ok(&self, args: &[&str]) -> String {
        checked(self.0.run(args))
    }

    /// Fails, and says why.
    #[track_caller]
    fn fails(&self, args: &[&str], code: i32, why: &str) {
        let out = self.0.run(args);
        let said = String::from_utf8_lossy(&out.stderr).into_owned();
        assert_eq!(out.status.code(), Some(code), "{args:?}: {said}");
        assert!(said.contains(why), "{args:?}: {said}");
    }

    /// The kept files of a recording; of one that has only begun, none.
    fn kept(&self, recording: &str) -> Vec<Value> {
        let out = self.0.run(["branches", "--json", recording]);
        let told = serde_json::from_slice::<Value>(&out.stdout).unwrap_or_default();
        told["kept"].as_array().cloned().unwrap_or_default()
    }

    /// Has the agent do this, and waits until its files are kept.
    #[track_caller]
    fn ask(&self, prompt: &str, trees: usize) {
        self.ok(&["ask", "agent", prompt]);
        eventually("the files to be kept", || self.kept("s.ahr").len() >= trees);
    }

    #[track_caller]
    fn end(&self, session: &str) {
        self.ok(&["kill", session]);
        eventually("the session to end", || !self.ok(&["ls"]).contains(session));
    }
}

#[track_caller]
fn checked(out: Output) -> String {
    assert!(out.status.success(), "{out:?}");
    String::from_utf8_lossy(&out.stdout).into_owned()
}

/// Every file below a folder but those of git and ignored ones: name, mode and content.
fn tree(folder: &Path) -> Vec<(String, u32, Vec<u8>)> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(next).expect("a folder").map(|e| e.expect("an entry")) {
            let (path, about) = (entry.path(), entry.metadata().expect("known"));
            let name = path.strip_prefix(folder).expect("below").to_string_lossy().into_owned();
            if name == ".git" || name.ends_with(".o") && !name.ends_with("tracked.o") {
                continue;
            }
            let content = if about.is_symlink() {
                fs::read_link(&path).expect("a link").into_os_string().into_encoded_bytes()
            } else if about.is_dir() {
                folders.push(path);
                continue;
            } else {
                fs::read(&path).expect("read")
            };
            // git keeps whether a file can be run.
            let is_run = about.mode() & 0o100;
            found.push((name, about.mode() & libc_type() | is_run, content));
        }
    }
    found.sort();
    found
}

/// The bits of a mode that say what kind of file it is.
fn libc_type() -> u32 {
    0o170_000
}

/// An agent edits files over five turns. From the second, a branch with another instruction has the
/// files of that time, byte for byte, and nothing of the user's is touched.
#[test]
fn a_branch_has_the_files_of_its_moment_and_the_user_keeps_theirs() {
    let Some(user) = User::new() else { return };
    user.git(&["init", "-q", "-b", "main"]);
    fs::create_dir(user.0.path("project/below")).expect("made");
    user.write(".gitignore", "*.o\n");
    user.write("below/code.txt", "one\ntwo\n");
    user.write("tracked.o", "tracked although ignored\n");
    user.git(&["add", "-A", "-f"]);
    user.git(&["commit", "-q", "-m", "base"]);
    user.write("below/code.txt", "stashed\n");
    user.git(&["stash", "-q"]);
    // Everything that would change files on their way, or run something of the user's.
    user.write(".gitattributes", "*.crlf text eol=crlf\n*.id ident\n*.caps filter=caps\n");
    user.git(&["config", "core.autocrlf", "true"]);
    user.git(&["config", "filter.caps.clean", "tr a-z A-Z"]);
    user.git(&["config", "filter.caps.smudge", "tr a-z A-Z"]);
    user.git(&["config", "commit.gpgSign", "true"]);
    user.git(&["config", "core.fsmonitor", "/bin/false"]);
    for hook in ["pre-commit", "post-checkout", "post-index-change", "reference-transaction", "post-commit"] {
        let path = user.0.path("project/.git/hooks").join(hook);
        fs::create_dir_all(path.parent().expect("a folder")).expect("made");
        fs::write(&path, "#!/bin/sh\ntouch \"$HOME/a-hook-ran\"\n").expect("written");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("set");
    }
    user.write("mixed.crlf", "a\r\nb\nc\r\n");
    user.write("$Id$.id", "$Id$ and $Id: x$\n");
    user.write("small.caps", "small\n");
    user.write("secret.o", "ignored\n");
    symlink("nowhere at all", user.0.path("project/dangling")).expect("made");

    let mut rec = user.start(&[]);
    rec.env("GIT_DIR", "/nowhere").env("GIT_INDEX_FILE", "/nowhere/index");
    checked(rec.output().expect("tapdeck runs"));
    eventually("the files at the start", || user.kept("s.ahr").len() == 1);
    let unchanged = || {
        let git = user.0.path("project/.git");
        let refs = user.git(&["for-each-ref", "refs/heads", "refs/stash", "refs/tags"]);
        let read = |name: &str| fs::read(git.join(name)).expect("read");
        (refs, read("index"), read("HEAD"), read("logs/HEAD"), user.git(&["stash", "list"]))
    };
    let before = unchanged();
    for (n, prompt) in [
        "echo two >> below/code.txt; echo new > 'new file'; chmod +x 'new file'",
        "printf 'x\\r\\ny' > z.crlf; rm dangling; ln -s 'new file' link; mkdir -p a/b; echo deep > a/b/c",
        "echo three >> below/code.txt; rm 'new file'; chmod +x below/code.txt",
        "rm -r a; echo four > below/four; echo changed > tracked.o",
        "echo five > z.crlf",
    ]
    .into_iter()
    .enumerate()
    {
        user.ask(prompt, n + 2);
    }
    assert_eq!(unchanged(), before);
    user.end("agent");
    let status = user.git(&["status", "--porcelain"]);

    let args = ["branch", "s.ahr", "--at", "turn:2", "--prompt", "^agent> $", "--json", "--instruction"];
    let mut branch = user.0.tapdeck(args);
    branch.env("COPIES", user.0.path("other")).arg("echo other > below/other");
    let made: Value = serde_json::from_str(&checked(branch.output().expect("it runs"))).expect("JSON");
    let worktree = Path::new(made["worktree"].as_str().expect("a folder")).to_owned();
    let session = made["session"].as_str().expect("an id").to_owned();
    let recording = made["recording"].as_str().expect("a path");
    let is_over = |tree: &Value| tree["turn"] == 1 && tree["reason"] == "turn";
    eventually("the branch to do otherwise", || user.kept(recording).iter().any(is_over));
    let mut files = tree(&worktree);
    files.retain(|(name, ..)| name != "below/other");
    assert_eq!(files, tree(&user.0.path("copies/2")));
    assert_eq!(fs::read_to_string(worktree.join("below/other")).expect("it did"), "other\n");
    let kept = &user.kept("s.ahr")[2];
    assert_eq!((&made["commit"], kept["turn"].as_u64()), (&kept["commit"], Some(2)));
    assert_eq!(made["parent"]["at"], "turn:2");

    // `git worktree add` is told to the repository, and nothing else is.
    let now = unchanged();
    assert_eq!(now, before);
    let now = user.git(&["status", "--porcelain"]);
    assert_eq!(now, status);
    assert!(!user.0.path("a-hook-ran").exists());
    let shown = user.ok(&["branches", "s.ahr"]);
    assert!(shown.contains("s-1  from turn:2") && shown.contains("echo other > below/other"), "{shown}");
    user.end(&session);

    // A branch of the branch stands below it, with its own changes.
    let second =
        user.ok(&["branch", recording, "--at", "turn:1", "--json", "--", "sh", "-c", "echo x > mine"]);
    let second: Value = serde_json::from_str(&second).expect("JSON");
    let list = || serde_json::from_str::<Value>(&user.ok(&["branches", "s.ahr", "--json"])).expect("JSON");
    eventually("its end", || list()["branches"][0]["branches"][0]["state"] == "exit code 0");
    let shown = &list()["branches"][0]["branches"][0];
    assert_eq!((&shown["name"], &shown["commit"]), (&"s-1-1".into(), &second["commit"]), "{shown}");
    assert!(shown["diff_stat"].as_str().is_some_and(|stat| stat.contains("mine")), "{shown}");
}

/// Turns, and the files at their ends, are those of the whole recording, where two were joined and
/// where a second session was appended.
#[test]
fn joined_and_appended_sessions_have_their_own_turns_and_files() {
    let Some(user) = User::new() else { return };
    user.git(&["init", "-q", "-b", "main"]);
    user.write("f.txt", "");
    let record = |args: &[&str], file: &str, words: [&str; 2], n: usize| {
        let mut rec = user.rec(&["-d", "--name", "agent", "--snapshots", "git"]);
        rec.args(args).args([file, "--"]).arg(user.0.path("agent"));
        checked(rec.output().expect("tapdeck runs"));
        eventually("the files at the start", || user.kept(file).len() == n);
        for (i, word) in words.iter().enumerate() {
            user.ok(&["ask", "agent", &format!("echo {word} >> f.txt")]);
            eventually("the files to be kept", || user.kept(file).len() == n + i + 1);
        }
        user.end("agent");
    };
    let file_at = |file: &str, at: &str| {
        let made = user.ok(&["branch", file, "--at", at, "--json", "--", "true"]);
        let made: Value = serde_json::from_str(&made).expect("JSON");
        let worktree = Path::new(made["worktree"].as_str().expect("a folder"));
        fs::read_to_string(worktree.join("f.txt")).expect("read").lines().collect::<Vec<_>>().join(" ")
    };
    record(&[], "g1.ahr", ["a", "b"], 1);
    fs::copy(user.0.path("g1.ahr"), user.0.path("s.ahr")).expect("copied");
    record(&[], "g2.ahr", ["c", "d"], 1);
    user.ok(&["cat", "g1.ahr", "g2.ahr", "-o", "joined.ahr", "-q"]);
    user.write("f.txt", "a\nb\n");
    record(&["--append"], "s.ahr", ["c", "d"], 4);
    for file in ["joined.ahr", "s.ahr"] {
        let files = ["", "a", "a b", "a b c", "a b c d"];
        for (turn, want) in files.iter().enumerate() {
            assert_eq!(&file_at(file, &format!("turn:{turn}")), want, "{file}, turn {turn}");
        }
        let turns = user.ok(&["turns", file, "--json"]);
        let turns: Value = serde_json::from_str(&turns).expect("JSON");
        let ids: Vec<&str> =
            turns.as_array().expect("a list").iter().filter_map(|t| t["turn_id"].as_str()).collect();
        assert_eq!(ids, [1, 2, 3, 4].map(|n| format!("{file}:{n}")));
        assert!(user.ok(&["turns", "show", &format!("{file}:3"), "--json"]).contains("echo c"));
        let text = user.ok(&["convert", file, "--as", "conversation", "-o", "-", "--to", "md"]);
        let headings = text.lines().filter_map(|line| line.strip_prefix("## ")?.split('.').next());
        assert_eq!(headings.collect::<Vec<_>>(), ["1", "2", "3", "4"], "{text}");
        user.fails(&["branch", file, "--at", "turn:5"], 3, "no turn 5: it has 4 turns");
    }
    // Without its first turn, the second keeps its number.
    user.ok(&["convert", "g1.ahr", "-o", "cut.ahr", "--cut", "turn:1..turn:2", "-q"]);
    user.fails(&["branch", "cut.ahr", "--at", "turn:1"], 3, "no turn 1: it has 1 turn;");
}

/// What a recording keeps of the files, and what is said where it cannot.
#[test]
fn files_are_kept_only_when_they_changed_and_where_there_is_a_repository() {
    let Some(user) = User::new() else { return };
    let trees = |args: &[&str], script: &str| {
        let mut all = args.to_vec();
        all.extend(["--headless", "--overwrite", "s.ahr", "--", "sh", "-c", script]);
        let out = user.rec(&all).output().expect("it runs");
        let said = String::from_utf8_lossy(&out.stderr).into_owned();
        assert!(out.status.success(), "{said}");
        let trees = user.kept("s.ahr");
        (trees.iter().map(|t| t["reason"].as_str().expect("text").to_owned()).collect::<Vec<_>>(), said)
    };
    let (kept, said) = trees(&["--snapshots", "git"], "true");
    assert!(kept.is_empty() && said.contains("is in no git repository"), "{said}");
    // A repository that appears later is used, before its first commit, too.
    let (kept, said) = trees(&["--snapshots", "git"], "git init -q; echo a > a");
    assert_eq!(kept, ["end"], "{said}");
    let (kept, _) = trees(&["--snapshots", "git"], "true");
    assert_eq!(kept, ["start"], "nothing changed");
    let (kept, _) = trees(&["--snapshots", "off"], "true");
    assert!(kept.is_empty());
    let repository = "mkdir sub; cd sub; git init -q; echo s > s; git add s; \
        git -c user.name=u -c user.email=u@u commit -qm s";
    let (kept, said) = trees(&["--snapshots", "git"], &format!("echo b > b; {repository}"));
    assert_eq!(kept, ["start", "end"]);
    assert!(said.contains("sub is a repository of its own"), "{said}");
    // The recording is no part of what it records.
    let own = ["--snapshots", "git", "--headless", "project/own.ahr", "--", "true"];
    checked(user.rec(&own).output().expect("it runs"));
    let tree = user.kept("project/own.ahr").pop().expect("kept");
    let names = user.git(&["ls-tree", "--name-only", tree["commit"].as_str().expect("text")]);
    assert!(names.lines().any(|name| name == "b") && !names.contains("own"), "{names}");
    // A snapshot of the session's own has its number, and the files.
    let snapshot = format!("{} snapshot --id 77 --label mine", crate::support::TAPDECK);
    let (kept, said) = trees(&["--snapshots", "git"], &format!("echo c > c; {snapshot}"));
    assert_eq!(kept.last().map(String::as_str), Some("snapshot"), "{said}");
    let tree = user.kept("s.ahr").pop().expect("kept");
    assert_eq!(tree["snapshot"], 77);
    let commit = tree["commit"].as_str().expect("text");
    assert!(user.git(&["ls-tree", "--name-only", commit]).lines().any(|name| name == "c"));
    let moments = user.ok(&["branch-points", "s.ahr"]);
    assert!(moments.contains("snapshot 77") && moments.contains("mine"), "{moments}");
}

/// A program of the user's can keep the files instead.
#[test]
fn a_command_keeps_files_in_its_own_way() {
    let Some(user) = User::new() else { return };
    let hook =
        "read x; printf '%s\\n' \"$x\" >> \"$HOME/asked\"; echo '{\"id\":\"zfs@1\",\"label\":\"by hand\"}'";
    let out = user.rec(&["--snapshots", hook, "--headless", "s.ahr", "--", "sh", "-c", "true"]).output();
    checked(out.expect("it runs"));
    let trees = user.kept("s.ahr");
    assert!(!trees.is_empty());
    assert!(trees.iter().all(|t| t["provider"] == "command" && t["commit"] == "zfs@1"), "{trees:?}");
    let asked = fs::read_to_string(user.0.path("asked")).expect("asked");
    let asked: Value = serde_json::from_str(asked.lines().next().expect("a line")).expect("JSON");
    assert_eq!((&asked["reason"], &asked["n"]), (&"start".into(), &1.into()), "{asked}");
    user.fails(&["branch", "s.ahr", "--at", "turn:0"], 2, "kept by a command");
    // One that fails is told of, and harms nothing.
    let out = user.rec(&["--snapshots", "echo no >&2; false", "--headless", "t.ahr", "--", "true"]).output();
    let out = out.expect("it runs");
    assert!(out.status.success());
    assert!(String::from_utf8_lossy(&out.stderr).contains("false: no"), "{out:?}");
}

/// Why a session cannot be branched is said before anything is made.
#[test]
fn a_branch_that_cannot_be_made_says_why() {
    let Some(user) = User::new() else { return };
    user.git(&["init", "-q"]);
    user.write("a", "a\n");
    let record = |snapshots: &str, file: &str| {
        let script = "echo hello; sleep 0.5; echo b > b";
        let out =
            user.rec(&["--snapshots", snapshots, "--headless", file, "--", "sh", "-c", script]).output();
        checked(out.expect("it runs"));
    };
    record("off", "without.ahr");
    user.fails(&["branch", "without.ahr", "--at", "turn:0"], 3, "rec --snapshots git");
    record("git", "s.ahr");
    user.fails(&["branch", "s.ahr", "--at", "turn:9"], 3, "has no turn 9");
    user.fails(&["branch", "s.ahr", "--at", "line:99"], 3, "has no line 99");
    user.fails(&["branch", "s.ahr", "--at", "@none"], 3, "no marker or snapshot");
    user.fails(&["branch", "s.ahr", "--at", "0s"], 3, "no files were kept before");
    user.fails(&["branch", "s.ahr", "--at", "second"], 2, "turn:N");
    let full = user.0.path("full");
    fs::create_dir(&full).expect("made");
    fs::write(full.join("x"), "mine").expect("written");
    let full = full.to_str().expect("text");
    user.fails(&["branch", "s.ahr", "--at", "100%", "--worktree", full], 2, "--worktree");
    user.fails(&["branch", "s.ahr", "--at", "100%", "--", "/nonexistent/program"], 4, "program");
    assert_eq!(user.git(&["worktree", "list"]).lines().count(), 1, "the worktree is removed again");
    for reference in user.git(&["for-each-ref", "--format=%(refname)", "refs/tapdeck"]).lines() {
        user.git(&["update-ref", "-d", reference]);
    }
    user.git(&["gc", "-q", "--prune=now"]);
    user.fails(&["branch", "s.ahr", "--at", "100%"], 3, "does not have commit");
    fs::remove_dir_all(user.0.path("project/.git")).expect("removed");
    user.fails(&["branch", "s.ahr", "--at", "100%"], 3, "--repository");
}

#[test]
fn two_attempts_are_compared() {
    let Some(user) = User::new() else { return };
    user.git(&["init", "-q"]);
    user.write("a.txt", "first\n");
    user.git(&["add", "-A"]);
    user.git(&["commit", "-q", "-m", "first"]);
    checked(user.start(&[]).output().expect("it starts"));
    user.ask("echo second > a.txt", 2);
    user.end("agent");
    let agent = user.0.path("agent").to_string_lossy().into_owned();
    for (name, prompt) in [("s-1", "echo apple > a.txt; echo one"), ("s-2", "echo pear > a.txt; echo two")] {
        let mut branch = user.0.tapdeck(["branch", "s.ahr", "--at", "turn:0", "--prompt", "^agent> $", "--"]);
        checked(branch.env("COPIES", user.0.path(name)).arg(&agent).output().expect("it starts"));
        user.ok(&["ask", name, prompt]);
        user.ok(&["kill", name]);
        eventually("the session to end", || !user.ok(&["ls"]).contains(name));
    }
    let compare = |args: &[&str], code: i32| {
        let out = user.0.run([&["branch", "--compare"], args].concat());
        assert_eq!(out.status.code(), Some(code), "{out:?}");
        String::from_utf8_lossy(&out.stdout).into_owned()
    };
    let text = compare(&["s-1", "s-2"], 1);
    let heads = text.lines().next().expect("a line");
    assert!(heads.contains("s-1 at ") && heads.contains("s-2 at "), "{text}");
    let marked = text.lines().find(|line| line.starts_with("one ")).expect("what the first said");
    assert!(marked.contains('|') && marked.ends_with(" two"), "{text}");
    assert!(text.contains("a.txt | 2 +-") && text.contains("\n-apple\n+pear\n"), "{text}");

    let json: Value = serde_json::from_str(&compare(&["s-1", "s-2", "--json"], 1)).expect("JSON");
    assert_eq!((&json["equal"], &json["a"]["name"]), (&false.into(), &"s-1".into()), "{json}");
    let screen = json["b"]["screen"]["text"].as_array().expect("rows");
    assert!(screen.iter().any(|row| row == "two"), "{json}");
    assert!(!json["changed_rows"].as_array().expect("rows").is_empty(), "{json}");
    assert!(json["diff"].as_str().is_some_and(|diff| diff.contains("-apple\n+pear\n")), "{json}");
    let commit = json["a"]["commit"].as_str().expect("a commit");
    assert_eq!(user.git(&["show", &format!("{commit}:a.txt")]), "apple\n");

    // With itself, and with the recording that it was branched from.
    assert!(compare(&["s-1", "s-1"], 0).contains("the files are equal"));
    assert!(compare(&["s.ahr", "s-1"], 1).contains("\n-second\n+apple\n"));
    user.fails(&["branch", "--compare", "s-1", "s-9"], 3, "s-9");
    user.fails(&["branch", "--compare", "s-1"], 2, "--compare");
    user.fails(&["branch", "--compare", "s-1", "s-2", "--at", "turn:1"], 2, "cannot be used with");
    user.fails(&["branch", "s.ahr"], 2, "--at");
    user.ok(&["rec", "-q", "plain.ahr", "--", "true"]);
    user.fails(&["branch", "--compare", "s-1", "plain.ahr"], 3, "no files were kept with it");
    // Their worktrees may be gone.
    for name in ["s-1", "s-2"] {
        let worktree = user.0.path("state/tapdeck/branches").join(name);
        user.git(&["worktree", "remove", "--force", &worktree.to_string_lossy()]);
    }
    assert!(compare(&["s-1", "s-2"], 1).contains("\n-apple\n+pear\n"));
}

/// The list showed `unknown`, the time of the last block and no changes of an attempt that runs.
#[test]
fn an_attempt_that_runs_is_shown_as_it_is_now() {
    let Some(user) = User::new() else { return };
    user.git(&["init", "-q"]);
    user.write("f", "one\n");
    user.git(&["add", "."]);
    user.git(&["commit", "-qm", "start"]);
    checked(user.start(&[]).output().expect("runs"));
    eventually("the first files", || user.kept("s.ahr").len() == 1);
    user.end("agent");
    let script = "echo two > f; echo new > g; exec sleep 600";
    user.ok(&["branch", "s.ahr", "--at", "turn:0", "--json", "--", "sh", "-c", script]);
    let shown = || serde_json::from_str::<Value>(&user.ok(&["branches", "s.ahr", "--json"])).expect("JSON");
    let attempt = || shown()["branches"][0].clone();
    eventually("its changes", || {
        let stat = attempt()["diff_stat"].as_str().unwrap_or_default().to_owned();
        stat.contains(" f | ") && stat.contains(" g | new")
    });
    assert_eq!(attempt()["state"], "running");
    let before = attempt()["duration_ms"].as_u64().expect("a duration");
    eventually("time to pass", || attempt()["duration_ms"].as_u64().is_some_and(|now| now > before));
    // Another repository is not the one that lost its reference.
    fs::create_dir(user.0.path("other")).expect("made");
    checked(user.0.command("git").args(["init", "-q"]).arg(user.0.path("other")).output().expect("runs"));
    let other = user.0.path("other");
    let other = other.to_str().expect("UTF-8");
    user.fails(
        &["branch", "s.ahr", "--at", "turn:0", "--repository", other],
        3,
        "the files were kept in the repository of",
    );
    user.ok(&["kill", "--all"]);
}
