//! The Agent Client Protocol, version 1: the messages of it that an agent without a file system, a
//! terminal or modes of its own needs. JSON-RPC 2.0, one message a line.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The version of the protocol.
pub const VERSION: u64 = 1;

/// Codes of errors.
pub mod code {
    /// It is no JSON.
    pub const PARSE: i64 = -32700;
    /// It is no request, or none that can be made now.
    pub const REQUEST: i64 = -32600;
    /// There is no such method.
    pub const METHOD: i64 = -32601;
    /// The parameters make no sense.
    pub const PARAMS: i64 = -32602;
    /// It failed.
    pub const FAILED: i64 = -32603;
    /// There is no such session.
    pub const NOT_FOUND: i64 = -32002;
}

/// The parameters of `initialize`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Initialize {
    /// The newest version that the client speaks.
    pub protocol_version: u64,
    /// What the client calls itself, if it says so.
    #[serde(default)]
    pub client_info: Option<Value>,
}

impl Initialize {
    /// Returns the client's name, if it has one.
    pub fn client(&self) -> Option<&str> {
        self.client_info.as_ref()?.get("name")?.as_str()
    }
}

/// The result of `initialize`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Initialized {
    /// The version that both speak.
    pub protocol_version: u64,
    /// What the agent can do.
    pub agent_capabilities: AgentCapabilities,
    /// What the agent is called.
    pub agent_info: Implementation,
    /// How to sign in: there is nothing to sign in to.
    pub auth_methods: [(); 0],
}

/// What an agent can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentCapabilities {
    /// It takes `session/load`.
    pub load_session: bool,
    /// What prompts may hold beside text and links.
    pub prompt_capabilities: PromptCapabilities,
    /// Which transports of MCP servers it takes.
    pub mcp_capabilities: McpCapabilities,
    /// Which methods for sessions it takes beside those that every agent does.
    pub session_capabilities: SessionCapabilities,
}

/// What prompts may hold beside text and links.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PromptCapabilities {
    /// Pictures.
    pub image: bool,
    /// Sound.
    pub audio: bool,
    /// The contents of files.
    pub embedded_context: bool,
}

/// Which transports of MCP servers an agent takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct McpCapabilities {
    /// HTTP.
    pub http: bool,
    /// Server-sent events.
    pub sse: bool,
}

/// Methods for sessions that an agent takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct SessionCapabilities {
    /// `session/close`.
    pub close: Empty,
    /// `session/resume`.
    pub resume: Empty,
}

/// An object without fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Empty {}

/// A program and its version.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Implementation {
    /// Its name for programs.
    pub name: &'static str,
    /// Its name for people.
    pub title: &'static str,
    /// Its version.
    pub version: &'static str,
}

/// The parameters of `session/new`, `session/load` and `session/resume`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OpenSession {
    /// The session, but for a new one.
    #[serde(default)]
    pub session_id: Option<String>,
    /// The folder to work in, an absolute path.
    pub cwd: String,
    /// MCP servers that the agent should connect to.
    #[serde(default)]
    pub mcp_servers: Option<Vec<McpServer>>,
    /// More folders to work in.
    #[serde(default)]
    pub additional_directories: Option<Vec<String>>,
}

/// An MCP server, of which the name alone is of interest.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct McpServer {
    /// Its name.
    #[serde(default)]
    pub name: String,
}

/// The result of `session/new`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NewSession {
    /// The session.
    pub session_id: String,
}

/// Parameters that name a session and nothing else.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct InSession {
    /// The session.
    pub session_id: String,
}

/// The parameters of `session/prompt`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Prompt {
    /// The session.
    pub session_id: String,
    /// What is asked.
    pub prompt: Vec<PromptPart>,
}

/// A part of a prompt.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum PromptPart {
    /// Text.
    Text {
        /// The text.
        text: String,
    },
    /// A link to a file or a page.
    ResourceLink {
        /// Where it is.
        uri: String,
    },
    /// A file and what it holds.
    Resource {
        /// The file.
        resource: Resource,
    },
    /// A picture.
    Image {},
    /// Sound.
    Audio {},
}

/// A file and what it holds.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Resource {
    /// Where it is.
    pub uri: String,
    /// What it holds, if that is text.
    #[serde(default)]
    pub text: Option<String>,
}

/// The result of `session/prompt`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Prompted {
    /// Why the turn is over.
    pub stop_reason: StopReason,
}

/// Why a turn is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    /// The agent has answered.
    EndTurn,
    /// The answer was broken off.
    Cancelled,
}

/// The parameters of `session/update`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionUpdate<'a> {
    /// The session.
    pub session_id: &'a str,
    /// What is new.
    pub update: &'a Update,
}

/// What is new in a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "sessionUpdate", rename_all = "snake_case")]
pub enum Update {
    /// More of what the user said.
    UserMessageChunk(Chunk),
    /// More of what the agent says.
    AgentMessageChunk(Chunk),
    /// The agent runs a tool.
    ToolCall(ToolCall),
    /// More about a tool that the agent runs.
    ToolCallUpdate(ToolCall),
}

/// A piece of a message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Chunk {
    /// The piece.
    pub content: Text,
}

impl Chunk {
    /// A piece of text.
    pub fn text(text: impl Into<String>) -> Self {
        Self { content: Text::new(text) }
    }
}

/// Text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Text {
    r#type: &'static str,
    text: String,
}

impl Text {
    /// Makes it.
    pub fn new(text: impl Into<String>) -> Self {
        Self { r#type: "text", text: text.into() }
    }
}

/// A tool that the agent runs, or what has changed about it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolCall {
    /// Tells it from others of the session.
    pub tool_call_id: String,
    /// What it does, for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The kind of tool, for its picture.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<ToolKind>,
    /// How far it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<ToolStatus>,
    /// What it says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content: Option<Vec<ToolContent>>,
}

/// The kind of a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolKind {
    /// It reads.
    Read,
    /// It changes files.
    Edit,
    /// It searches.
    Search,
    /// It runs a command.
    Execute,
    /// It fetches something.
    Fetch,
    /// It does something else.
    Other,
}

/// How far a tool is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolStatus {
    /// It has not begun.
    Pending,
    /// It runs.
    InProgress,
    /// It is done.
    Completed,
    /// It has failed, or was denied.
    Failed,
}

/// What a tool says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ToolContent {
    r#type: &'static str,
    content: Text,
}

impl ToolContent {
    /// Text.
    pub fn text(text: impl Into<String>) -> Self {
        Self { r#type: "content", content: Text::new(text) }
    }
}

/// The parameters of `session/request_permission`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RequestPermission {
    /// The session.
    pub session_id: String,
    /// What needs the permission.
    pub tool_call: ToolCall,
    /// What can be chosen.
    pub options: Vec<PermissionOption>,
}

/// What can be chosen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PermissionOption {
    /// Tells it from others of the question.
    pub option_id: String,
    /// Its words.
    pub name: String,
    /// What it means, for its picture.
    pub kind: PermissionKind,
}

/// What an option means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PermissionKind {
    /// Yes.
    AllowOnce,
    /// Yes, and do not ask again.
    AllowAlways,
    /// No.
    RejectOnce,
    /// No, and do not ask again.
    RejectAlways,
}

/// The result of `session/request_permission`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Permission {
    /// What was chosen.
    pub outcome: PermissionOutcome,
}

/// What was chosen.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum PermissionOutcome {
    /// Nothing: the turn was cancelled.
    Cancelled,
    /// This option.
    #[serde(rename_all = "camelCase")]
    Selected {
        /// The option.
        option_id: String,
    },
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn messages_have_the_form_of_the_schema() {
        let update = Update::AgentMessageChunk(Chunk::text("hi"));
        assert_eq!(
            serde_json::to_value(SessionUpdate { session_id: "s", update: &update }).expect("JSON"),
            json!({"sessionId": "s", "update": {
                "sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "hi"},
            }})
        );
        let call = ToolCall {
            tool_call_id: "1".into(),
            status: Some(ToolStatus::InProgress),
            content: Some(vec![ToolContent::text("out")]),
            ..ToolCall::default()
        };
        assert_eq!(
            serde_json::to_value(Update::ToolCallUpdate(call)).expect("JSON"),
            json!({"sessionUpdate": "tool_call_update", "toolCallId": "1", "status": "in_progress",
                   "content": [{"type": "content", "content": {"type": "text", "text": "out"}}]})
        );
        let chosen = json!({"outcome": {"outcome": "selected", "optionId": "2"}});
        let chosen: Permission = serde_json::from_value(chosen).expect("a choice");
        assert_eq!(chosen.outcome, PermissionOutcome::Selected { option_id: "2".into() });
        let part =
            json!({"type": "resource", "resource": {"uri": "file:///a", "text": "x", "mimeType": null}});
        let part: PromptPart = serde_json::from_value(part).expect("a part");
        assert!(matches!(part, PromptPart::Resource { resource } if resource.text.as_deref() == Some("x")));
    }
}
