//! The subcommands: one file or folder each, and nothing else.

use clap::Subcommand;

use crate::ending::{Ending, Report};
use crate::failure::Result;

#[cfg(feature = "mcp")]
mod acp;
#[cfg(feature = "web")]
mod agentapi;
mod agents;
mod answer;
mod ask;
mod attach;
mod branch;
mod branch_points;
mod broker;
mod bus;
mod capture;
mod cassette;
mod completions;
mod config;
#[cfg(feature = "net")]
mod connect;
mod convert;
#[cfg(feature = "tui")]
mod dash;
mod deliver;
mod diff;
mod doctor;
mod explain;
#[cfg(feature = "hotkeys")]
mod hotkeys;
mod index;
mod info;
mod instruct;
mod kill;
mod ls;
mod man;
mod mark;
#[cfg(feature = "mcp")]
mod mcp;
#[cfg(feature = "web")]
mod page_player;
mod paste;
mod peek;
mod play;
mod probe;
mod rec;
#[cfg(feature = "mcp")]
mod recording_text;
mod recordings;
mod relay;
mod rename;
mod render;
mod repair;
mod reset;
mod resize;
mod run;
mod scrub;
mod send;
#[cfg(feature = "net")]
mod serve;
mod snapshot;
mod squad;
#[cfg(any(feature = "mcp", feature = "web"))]
mod stopped;
mod tail;
mod test;
mod tour;
mod turns;
mod r#type;
mod verify;
#[cfg(feature = "tui")]
mod view;
mod wait;
#[cfg(feature = "web")]
mod web;

/// What to do.
#[derive(Subcommand)]
pub(crate) enum Command {
    Run(Box<run::RunArgs>),
    Rec(Box<rec::RecArgs>),
    Ls(ls::LsArgs),
    Attach(attach::AttachArgs),
    Peek(peek::PeekArgs),
    Send(send::SendArgs),
    Type(r#type::TypeArgs),
    Paste(paste::PasteArgs),
    Ask(ask::AskArgs),
    Answer(answer::AnswerArgs),
    Approve(answer::ApproveArgs),
    Deny(answer::DenyArgs),
    Wait(wait::WaitArgs),
    Turns(turns::TurnsArgs),
    Explain(explain::ExplainArgs),
    Broker(broker::BrokerArgs),
    Capture(capture::CaptureArgs),
    Deliver(deliver::DeliverArgs),
    Relay(relay::RelayArgs),
    Squad(squad::SquadArgs),
    Agents(agents::AgentsArgs),
    #[cfg(feature = "hotkeys")]
    Hotkeys(hotkeys::HotkeysArgs),
    Tail(tail::TailArgs),
    Kill(kill::KillArgs),
    Mark(mark::MarkArgs),
    Instruct(instruct::InstructArgs),
    Rename(rename::RenameArgs),
    Reset(reset::ResetArgs),
    Resize(resize::ResizeArgs),
    Bus(bus::BusArgs),
    #[cfg(feature = "mcp")]
    Acp(acp::AcpArgs),
    #[cfg(feature = "mcp")]
    Mcp(mcp::McpArgs),
    #[cfg(feature = "mcp")]
    RecordingText(recording_text::RecordingTextArgs),
    #[cfg(feature = "net")]
    Serve(Box<serve::ServeArgs>),
    #[cfg(feature = "net")]
    Connect(Box<connect::ConnectArgs>),
    Snapshot(snapshot::SnapshotArgs),
    Play(play::PlayArgs),
    #[cfg(feature = "tui")]
    View(view::ViewArgs),
    #[cfg(feature = "tui")]
    Dash(dash::DashArgs),
    #[cfg(feature = "web")]
    Web(web::WebArgs),
    #[cfg(feature = "web")]
    #[command(name = "agentapi")]
    AgentApi(Box<agentapi::AgentApiArgs>),
    #[cfg(feature = "web")]
    PagePlayer(page_player::PagePlayerArgs),
    Convert(Box<convert::ConvertArgs>),
    Cat(Box<convert::CatArgs>),
    Diff(diff::DiffArgs),
    Verify(verify::VerifyArgs),
    Repair(repair::RepairArgs),
    Index(index::IndexArgs),
    BranchPoints(branch_points::BranchPointsArgs),
    Branch(Box<branch::BranchArgs>),
    Branches(branch::BranchesArgs),
    Info(info::InfoArgs),
    Recordings(recordings::RecordingsArgs),
    Cassette(cassette::CassetteArgs),
    Test(test::TestArgs),
    Scrub(scrub::ScrubCommand),
    Probe(probe::ProbeArgs),
    Tour(tour::TourArgs),
    Config(config::ConfigArgs),
    Doctor(doctor::DoctorArgs),
    Completions(completions::CompletionsArgs),
    Man(man::ManArgs),
    /// Feed bytes to the terminal model and print the final screen
    Render(render::RenderArgs),
}

/// Runs a subcommand, and reports its failure.
pub(crate) fn run(command: &Command) -> Ending {
    dispatch(command).unwrap_or_else(|failure| failure.report(command.report()))
}

fn dispatch(command: &Command) -> Result {
    match command {
        Command::Run(args) => run::run(args),
        Command::Rec(args) => rec::run(args),
        Command::Ls(args) => ls::run(args),
        Command::Attach(args) => attach::run(args),
        Command::Peek(args) => peek::run(args),
        Command::Send(args) => send::run(args),
        Command::Type(args) => r#type::run(args),
        Command::Paste(args) => paste::run(args),
        Command::Ask(args) => ask::run(args),
        Command::Answer(args) => answer::run(args),
        Command::Approve(args) => answer::approve(args),
        Command::Deny(args) => answer::deny(args),
        Command::Wait(args) => wait::run(args),
        Command::Turns(args) => turns::run(args),
        Command::Explain(args) => explain::run(args),
        Command::Broker(args) => broker::run(args),
        Command::Capture(args) => capture::run(args),
        Command::Deliver(args) => deliver::run(args),
        Command::Relay(args) => relay::run(args),
        Command::Squad(args) => squad::run(args),
        Command::Agents(args) => agents::run(args),
        #[cfg(feature = "hotkeys")]
        Command::Hotkeys(args) => hotkeys::run(args),
        Command::Tail(args) => tail::run(args),
        Command::Kill(args) => kill::run(args),
        Command::Mark(args) => mark::run(args),
        Command::Instruct(args) => instruct::run(args),
        Command::Rename(args) => rename::run(args),
        Command::Reset(args) => reset::run(args),
        Command::Resize(args) => resize::run(args),
        Command::Bus(args) => bus::run(args),
        #[cfg(feature = "mcp")]
        Command::Acp(args) => acp::run(args),
        #[cfg(feature = "mcp")]
        Command::Mcp(args) => mcp::run(args),
        #[cfg(feature = "mcp")]
        Command::RecordingText(args) => recording_text::run(args),
        #[cfg(feature = "net")]
        Command::Serve(args) => serve::run(args),
        #[cfg(feature = "net")]
        Command::Connect(args) => connect::run(args),
        Command::Snapshot(args) => snapshot::run(args),
        Command::Play(args) => play::run(args),
        #[cfg(feature = "tui")]
        Command::View(args) => view::run(args),
        #[cfg(feature = "tui")]
        Command::Dash(args) => dash::run(args),
        #[cfg(feature = "web")]
        Command::Web(args) => web::run(args),
        #[cfg(feature = "web")]
        Command::AgentApi(args) => agentapi::run(args),
        #[cfg(feature = "web")]
        Command::PagePlayer(args) => page_player::run(args),
        Command::Convert(args) => convert::run(args),
        Command::Cat(args) => convert::cat(args),
        Command::Diff(args) => diff::run(args),
        Command::Verify(args) => verify::run(args),
        Command::Repair(args) => repair::run(args),
        Command::Index(args) => index::run(args),
        Command::BranchPoints(args) => branch_points::run(args),
        Command::Branch(args) => branch::run(args),
        Command::Branches(args) => branch::list(args),
        Command::Info(args) => info::run(args),
        Command::Recordings(args) => recordings::run(args),
        Command::Cassette(args) => cassette::run(args),
        Command::Test(args) => test::run(args),
        Command::Scrub(args) => scrub::run(args),
        Command::Probe(args) => probe::run(args),
        Command::Tour(args) => tour::run(args),
        Command::Config(args) => config::run(args),
        Command::Doctor(args) => doctor::run(args),
        Command::Completions(args) => completions::run(args),
        Command::Man(args) => man::run(args),
        Command::Render(args) => render::run(args),
    }
}

impl Command {
    /// Whether the subcommand starts its log itself.
    pub(crate) fn starts_log(&self) -> bool {
        #[cfg(feature = "net")]
        let starts = matches!(self, Command::Serve(_));
        #[cfg(not(feature = "net"))]
        let starts = false;
        starts
    }

    /// How the subcommand reports a failure.
    fn report(&self) -> Report {
        match self {
            Command::Ls(args) => Report::json(args.json),
            Command::Peek(args) => Report::json(args.json),
            Command::Paste(args) => Report::json(args.json),
            Command::Ask(args) => Report::json(args.json),
            Command::Answer(args) => Report::json(args.reports_json()),
            Command::Approve(args) => Report::json(args.reports_json()),
            Command::Deny(args) => Report::json(args.reports_json()),
            Command::Wait(args) => Report::json(args.json),
            Command::Turns(args) => Report::json(args.reports_json()),
            Command::Explain(args) => Report::json(args.json),
            Command::Capture(args) => Report::json(args.json),
            Command::Relay(args) => Report::json(args.json),
            Command::Squad(args) => Report::json(args.reports_json()),
            #[cfg(feature = "hotkeys")]
            Command::Hotkeys(args) => Report::json(args.json),
            Command::Diff(args) => Report::json(args.json),
            Command::Recordings(args) => args.report(),
            Command::Snapshot(args) => Report::json(args.json),
            Command::Instruct(args) => Report::json(args.json),
            Command::Verify(args) => Report::json(args.json),
            Command::Repair(args) => Report::json(args.json),
            Command::BranchPoints(args) => Report::json(args.reports_json()),
            Command::Branch(args) => Report::json(args.json),
            Command::Branches(args) => Report::json(args.json),
            Command::Cassette(args) => args.report(),
            Command::Config(args) => Report::json(args.reports_json()),
            Command::Test(args) => Report::json(args.json),
            Command::Scrub(args) => args.report(),
            Command::Probe(args) => Report::json(args.json),
            Command::Render(args) => Report::json(args.json),
            _ => Report::Text,
        }
    }
}
