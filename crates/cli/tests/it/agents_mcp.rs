//! Real coding agents as clients of the Model Context Protocol: one drives another. They are no
//! part of the usual tests: `cargo xtask agents` installs the agents and runs these.

use std::fs;
use std::process::{Command, Output, Stdio};

use serde_json::json;
use tapdeck_needs::has;

use crate::agents::{Agent, KEY, Model, end_daemons};
use crate::live::Detached;
use crate::support::{Home, TAPDECK};

/// The server's command line and environment, as clients configure it.
fn server(home: &Home) -> (Vec<&'static str>, serde_json::Value) {
    let place = |name: &str| home.path(name).to_str().expect("text").to_owned();
    let env = json!({"XDG_RUNTIME_DIR": place("run"), "XDG_STATE_HOME": place("state")});
    (vec!["mcp", "--allow", "drive"], env)
}

/// Claude Code, which sends one prompt and prints the answer.
fn claude(home: &Home, model: &Model, prompt: &str) -> Output {
    let (args, env) = server(home);
    let config = json!({"mcpServers": {"tapdeck": {"command": TAPDECK, "args": args, "env": env}}});
    fs::write(home.path("mcp.json"), config.to_string()).expect("written");
    let onboarded = json!({
        "hasCompletedOnboarding": true, "theme": "dark",
        "customApiKeyResponses": {"approved": [&KEY[KEY.len() - 20..]], "rejected": []},
    });
    fs::write(home.path(".claude.json"), onboarded.to_string()).expect("written");
    let mut command = home.command("claude");
    command.args(["-p", prompt, "--mcp-config", "mcp.json", "--strict-mcp-config"]);
    command.args(["--allowedTools", "mcp__tapdeck__*"]);
    // Otherwise the model has to search for the tools first, and this one does not.
    command.env("ENABLE_TOOL_SEARCH", "false").env("ANTHROPIC_API_KEY", KEY).env("IS_SANDBOX", "1");
    command.env("ANTHROPIC_BASE_URL", format!("http://127.0.0.1:{}", model.port));
    command.env("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1").env("DISABLE_AUTOUPDATER", "1");
    run(command)
}

/// Codex, which does the same.
fn codex(home: &Home, model: &Model, prompt: &str) -> Output {
    let (args, env) = server(home);
    let env = env.as_object().expect("an object").iter().map(|(name, value)| format!("{name} = {value}"));
    let config = format!(
        "model = \"mock-model\"\nmodel_provider = \"mock\"\ncheck_for_update_on_startup = false\n\
         approval_policy = \"never\"\nsandbox_mode = \"danger-full-access\"\n\
         [model_providers.mock]\nname = \"mock\"\nbase_url = \"http://127.0.0.1:{}/v1\"\n\
         wire_api = \"responses\"\nenv_key = \"MOCK_KEY\"\n\
         [mcp_servers.tapdeck]\ncommand = {}\nargs = {}\nenv = {{ {} }}\n",
        model.port,
        json!(TAPDECK),
        json!(args),
        env.collect::<Vec<_>>().join(", ")
    );
    fs::create_dir_all(home.path(".codex")).expect("a folder");
    fs::write(home.path(".codex/config.toml"), config).expect("written");
    let mut command = home.command("codex");
    command.args(["exec", "--skip-git-repo-check", prompt]).env("MOCK_KEY", KEY);
    run(command)
}

fn run(mut command: Command) -> Output {
    command.stdin(Stdio::null()).output().expect("it runs")
}

fn said(out: &Output) -> String {
    String::from_utf8_lossy(&out.stdout).into_owned() + &String::from_utf8_lossy(&out.stderr)
}

/// The daemons of an agent, ended with the test.
struct Daemons<'a>(&'a Home, &'a Model);

impl Drop for Daemons<'_> {
    fn drop(&mut self) {
        end_daemons(self.0, self.1);
    }
}

/// Has an agent type into a shell and read its screen.
fn drives_a_shell(name: &str, agent: fn(&Home, &Model, &str) -> Output) {
    if !has("node") || !has(name) {
        return;
    }
    let home = Home::new();
    let model = Model::start(&home);
    let _daemons = Daemons(&home, &model);
    let session = Detached::start(&home, &["--name", "build"], &["sh"]);
    let typed =
        "call the tool type_text with {\"session\":\"build\",\"text\":\"echo $((40+2))\",\"enter\":true}";
    let out = agent(&home, &model, typed);
    assert!(said(&out).contains("typed 14 characters"), "{}", said(&out));
    session.wait_text("^42");
    let out = agent(&home, &model, "call the tool read_screen with {\"session\":\"build\"}");
    assert!(said(&out).contains("session build (id") && said(&out).contains("42"), "{}", said(&out));
}

#[test]
#[ignore = "needs the real program: cargo xtask agents"]
fn claude_drives_a_shell_by_mcp() {
    drives_a_shell("claude", claude);
}

#[test]
#[ignore = "needs the real program: cargo xtask agents"]
fn codex_drives_a_shell_by_mcp() {
    drives_a_shell("codex", codex);
}

#[test]
#[ignore = "needs the real program: cargo xtask agents"]
fn claude_asks_codex_by_mcp() {
    if !has("node") || !has("claude") || !has("codex") {
        return;
    }
    let other = Agent::start("codex", true);
    other.is("idle");
    let ask = "call the tool ask with {\"session\":\"agent\",\"text\":\"What is the capital of France?\"}";
    let out = claude(&other.home, &other.model, ask);
    assert!(said(&out).contains("The capital of France is Paris."), "{}", said(&out));
    assert!(said(&out).contains("\"outcome\":\"answered\""), "{}", said(&out));
}
