//! The commands, grouped by what they are for. Help, manual pages and the reference list them so.

use clap::Command;

/// The commands of one purpose.
pub(crate) struct Group {
    pub(crate) title: &'static str,
    names: &'static [&'static str],
}

/// All groups. A command that a feature leaves out keeps its place here.
pub(crate) const GROUPS: [Group; 7] = [
    Group {
        title: "Record and replay",
        names: &[
            "rec",
            "play",
            "view",
            "mark",
            "snapshot",
            "instruct",
            "branch-points",
            "branch",
            "branches",
        ],
    },
    Group {
        title: "Live sessions",
        names: &[
            "run", "ls", "attach", "peek", "tail", "send", "type", "wait", "resize", "rename", "kill",
            "dash", "bus",
        ],
    },
    Group {
        title: "Agents",
        names: &[
            "ask", "answer", "approve", "deny", "paste", "turns", "explain", "relay", "squad", "broker",
            "capture", "deliver", "hotkeys", "probe", "agents", "mcp", "acp", "agentapi",
        ],
    },
    Group { title: "Tests", names: &["test", "cassette", "render"] },
    Group { title: "Network", names: &["serve", "connect", "web"] },
    Group {
        title: "Files",
        names: &["info", "recordings", "verify", "repair", "index", "convert", "cat", "diff", "scrub"],
    },
    Group { title: "Tool", names: &["tour", "help", "doctor", "reset", "config", "completions", "man"] },
];

impl Group {
    /// The group's commands, in its order.
    pub(crate) fn commands<'a>(&self, all: &'a Command) -> Vec<&'a Command> {
        self.names.iter().filter_map(|name| all.find_subcommand(name)).collect()
    }
}

/// What a command does, in one line.
pub(crate) fn about(command: &Command) -> String {
    let about = command.get_about().map(|about| about.to_string()).unwrap_or_default();
    about.trim_end_matches('.').replace('\n', " ")
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    /// Commands that need a feature, and whether it is on.
    const OPTIONAL: [(&str, bool); 9] = [
        ("acp", cfg!(feature = "mcp")),
        ("agentapi", cfg!(feature = "web")),
        ("connect", cfg!(feature = "net")),
        ("dash", cfg!(feature = "tui")),
        ("hotkeys", cfg!(feature = "hotkeys")),
        ("mcp", cfg!(feature = "mcp")),
        ("serve", cfg!(feature = "net")),
        ("view", cfg!(feature = "tui")),
        ("web", cfg!(feature = "web")),
    ];

    #[test]
    fn every_command_is_in_one_group() {
        let mut all = crate::Cli::command();
        all.build();
        let grouped: Vec<&str> = GROUPS.iter().flat_map(|group| group.names).copied().collect();
        for command in all.get_subcommands().filter(|command| !command.is_hide_set()) {
            let name = command.get_name();
            let count = grouped.iter().filter(|grouped| **grouped == name).count();
            assert_eq!(count, 1, "{name} must be in one group");
            assert!(!about(command).is_empty(), "{name} needs a line that says what it does");
        }
        for name in grouped {
            let built = OPTIONAL.iter().find(|(optional, _)| *optional == name).is_none_or(|(_, on)| *on);
            assert_eq!(all.find_subcommand(name).is_some(), built, "{name}");
        }
    }
}
