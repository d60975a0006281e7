//! The settings with which each agent talks to the model on the loopback, and asks nothing first.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use serde_json::json;

use super::Agent;

const KEY: &str = "not-a-real-key-0123456789";

/// Variables, and a program with its arguments.
pub(super) type Program = (Vec<(&'static str, String)>, Vec<&'static str>);

/// Writes the settings of an agent. Returns how to start it.
pub(super) fn prepare(agent: Agent, home: &Path, url: &str) -> Result<Program> {
    let project = home.join("project");
    let folder = project.to_str().context("the temporary folder has a plain name")?;
    match agent {
        Agent::Claude => {
            let config = json!({
                "hasCompletedOnboarding": true, "theme": "dark",
                "projects": {folder: {"hasTrustDialogAccepted": true}},
                "customApiKeyResponses": {"approved": [&KEY[KEY.len() - 20..]], "rejected": []},
            });
            write(home, ".claude.json", &config.to_string())?;
            let on = || "1".to_owned();
            let variables = vec![
                ("ANTHROPIC_BASE_URL", url.to_owned()),
                ("ANTHROPIC_API_KEY", KEY.to_owned()),
                ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", on()),
                ("DISABLE_AUTOUPDATER", on()),
                ("IS_SANDBOX", on()),
            ];
            Ok((variables, vec!["claude", "--permission-mode", "default"]))
        }
        Agent::Codex => {
            let config = format!(
                "model = \"mock-model\"\nmodel_provider = \"mock\"\ncheck_for_update_on_startup = false\n\
                 approval_policy = \"on-request\"\nsandbox_mode = \"read-only\"\n\
                 [model_providers.mock]\nname = \"mock\"\nbase_url = \"{url}/v1\"\n\
                 wire_api = \"responses\"\nenv_key = \"MOCK_KEY\"\n\
                 [projects.\"{folder}\"]\ntrust_level = \"trusted\"\n"
            );
            write(home, ".codex/config.toml", &config)?;
            Ok((vec![("MOCK_KEY", KEY.to_owned())], vec!["codex"]))
        }
        Agent::Gemini => {
            let settings = json!({
                "security": {"auth": {"selectedType": "gemini-api-key"}, "folderTrust": {"enabled": false}},
                "general": {"disableAutoUpdate": true, "enableAutoUpdate": false},
                "privacy": {"usageStatisticsEnabled": false}, "ui": {"theme": "Default"},
                // The model says the same word again and again.
                "model": {"disableLoopDetection": true},
            });
            write(home, ".gemini/settings.json", &settings.to_string())?;
            let variables =
                vec![("GEMINI_API_KEY", KEY.to_owned()), ("GOOGLE_GEMINI_BASE_URL", url.to_owned())];
            Ok((variables, vec!["gemini", "--model", "gemini-2.5-flash"]))
        }
        Agent::Qwen => {
            let settings = json!({
                "security": {"auth": {"selectedType": "openai"}},
                "general": {"disableAutoUpdate": true, "enableAutoUpdate": false},
                "privacy": {"usageStatisticsEnabled": false},
            });
            write(home, ".qwen/settings.json", &settings.to_string())?;
            let variables = vec![
                ("OPENAI_API_KEY", KEY.to_owned()),
                ("OPENAI_BASE_URL", format!("{url}/v1")),
                ("OPENAI_MODEL", "mock-model".to_owned()),
            ];
            Ok((variables, vec!["qwen", "--approval-mode", "default"]))
        }
        Agent::Opencode => {
            let options = json!({"baseURL": format!("{url}/v1"), "apiKey": KEY});
            let models = json!({"mock-model": {"name": "mock-model", "tool_call": true}});
            let provider = json!({"npm": "@ai-sdk/openai-compatible", "name": "mock", "options": options, "models": models});
            let config = json!({
                "autoupdate": false, "share": "disabled", "model": "mock/mock-model",
                "small_model": "mock/mock-model", "provider": {"mock": provider},
                "permission": {"edit": "ask", "bash": "ask"},
            });
            write(home, "config/opencode/opencode.json", &config.to_string())?;
            Ok((Vec::new(), vec!["opencode"]))
        }
        Agent::Aider => {
            let settings = format!(
                "model: openai/mock-model\nopenai-api-base: {url}/v1\ncheck-update: false\nanalytics: false\n\
                 show-release-notes: false\nshow-model-warnings: false\ngit: false\n"
            );
            write(home, ".aider.conf.yml", &settings)?;
            Ok((vec![("OPENAI_API_KEY", KEY.to_owned())], vec!["aider"]))
        }
        Agent::Copilot => {
            let config = json!({"trusted_folders": [folder], "banner": "never"});
            write(home, ".copilot/config.json", &config.to_string())?;
            let variables = vec![
                ("COPILOT_OFFLINE", "true".to_owned()),
                ("COPILOT_AUTO_UPDATE", "false".to_owned()),
                ("COPILOT_PROVIDER_BASE_URL", format!("{url}/v1")),
                ("COPILOT_PROVIDER_API_KEY", KEY.to_owned()),
                ("COPILOT_MODEL", "mock-model".to_owned()),
            ];
            Ok((variables, vec!["copilot"]))
        }
        Agent::Cline => {
            let mut auth = Command::new("cline");
            auth.args(["auth", "-p", "openai", "-k", KEY, "-m", "mock-model", "-b"]);
            let done = auth.arg(format!("{url}/v1")).env("HOME", home).stdin(Stdio::null()).output();
            let done = done.context("cannot run cline")?;
            if !done.status.success() {
                bail!("cline auth failed: {}", String::from_utf8_lossy(&done.stderr));
            }
            let shown = json!({"cline-cli-cline-pass-intro": true, "cline-cli-desktop-launch": true});
            write(home, ".cline/data/settings/cli-notices.json", &json!({"shown": shown}).to_string())?;
            Ok((Vec::new(), vec!["cline", "-i", "--auto-approve", "false"]))
        }
    }
}

fn write(home: &Path, name: &str, text: &str) -> Result<()> {
    let path = home.join(name);
    fs::create_dir_all(path.parent().context("below the home")?)?;
    fs::write(&path, text).with_context(|| path.display().to_string())
}
