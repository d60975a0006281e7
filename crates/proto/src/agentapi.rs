//! The HTTP interface of coder/agentapi 0.12.1: its bodies and events.

use serde::{Deserialize, Serialize};

/// Whether the agent works or waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AgentStatus {
    /// It works.
    Running,
    /// It waits for input.
    Stable,
}

/// The author of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ConversationRole {
    /// The agent.
    Agent,
    /// The agent's user.
    User,
}

/// How the agent is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Transport {
    /// By the Agent Client Protocol.
    Acp,
    /// By its terminal.
    Pty,
}

/// The reply to `GET /status`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StatusResponse {
    /// The kind of agent: `claude`, `codex`, `custom` …
    pub agent_type: String,
    /// Whether it works or waits.
    pub status: AgentStatus,
    /// How it is reached.
    pub transport: Transport,
}

/// A message of the conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    /// The text as the terminal shows it.
    pub content: String,
    /// Its number; later messages have higher ones.
    pub id: u64,
    /// Its author.
    pub role: ConversationRole,
    /// When it was last changed, by RFC 3339.
    pub time: String,
}

/// The reply to `GET /messages`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MessagesResponse {
    /// The messages, the oldest first.
    pub messages: Vec<Message>,
}

/// What a message to the agent is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MessageType {
    /// Keystrokes, which are typed as they are.
    Raw,
    /// A prompt.
    User,
}

/// The body of `POST /message`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MessageRequest {
    /// The URL of a schema, which means nothing.
    #[serde(rename = "$schema", default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<String>,
    /// The text.
    pub content: String,
    /// What it is.
    pub r#type: MessageType,
}

/// The reply to `POST /message`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct MessageResponse {
    /// Always true; failures have an [`ErrorModel`].
    pub ok: bool,
}

/// The reply to `POST /upload`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UploadResponse {
    /// Where the file is.
    #[serde(rename = "filePath")]
    pub file_path: String,
    /// Always true.
    pub ok: bool,
}

/// The event `message_update`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MessageUpdate {
    /// The message's number.
    pub id: u64,
    /// The text as the terminal shows it.
    pub message: String,
    /// Its author.
    pub role: ConversationRole,
    /// When it was last changed.
    pub time: String,
}

impl From<&Message> for MessageUpdate {
    fn from(message: &Message) -> Self {
        let Message { content, id, role, time } = message.clone();
        Self { id, message: content, role, time }
    }
}

/// The event `status_change`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StatusChange {
    /// The kind of agent.
    pub agent_type: String,
    /// Whether it works or waits.
    pub status: AgentStatus,
}

/// The event `screen_update`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScreenUpdate {
    /// The screen's rows.
    pub screen: String,
}

/// How bad an error is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ErrorLevel {
    /// The agent cannot go on.
    Error,
    /// It can.
    Warning,
}

/// The event `agent_error`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentError {
    /// How bad it is.
    pub level: ErrorLevel,
    /// What happened.
    pub message: String,
    /// When.
    pub time: String,
}

/// The body of a refusal, as RFC 7807 has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorModel {
    /// The HTTP status code.
    pub status: u16,
    /// The status code in words.
    pub title: String,
    /// What went wrong and what to do.
    pub detail: String,
    /// The parts of the request that are wrong.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<ErrorDetail>,
}

/// What is wrong with a part of a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorDetail {
    /// What is wrong.
    pub message: String,
    /// Which part, such as `body.type`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub location: Option<String>,
}
