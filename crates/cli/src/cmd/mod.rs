//! The subcommands, one file each.

use clap::Subcommand;

use crate::ending::{Ending, code, complain, output_failed};

mod attach;
mod branch_points;
mod broker;
mod cassette;
mod completions;
#[cfg(feature = "net")]
mod connect;
mod convert;
#[cfg(feature = "tui")]
mod dash;
mod doctor;
mod doors;
#[cfg(feature = "hotkeys")]
mod hotkeys;
mod index;
mod info;
mod kill;
mod ls;
mod man;
mod paste;
mod peek;
mod play;
mod probe;
mod rec;
mod render;
mod repair;
mod run;
mod scrub;
mod send;
#[cfg(feature = "net")]
mod serve;
mod snapshot;
mod tail;
mod test;
mod turns;
mod verify;
#[cfg(feature = "tui")]
mod view;
mod wait;
#[cfg(feature = "web")]
mod web;

pub(crate) use doors::DoorArgs;

/// What to do.
#[derive(Subcommand)]
pub(crate) enum Command {
    Run(Box<run::RunArgs>),
    Rec(Box<rec::RecArgs>),
    Ls(ls::LsArgs),
    Attach(attach::AttachArgs),
    Peek(peek::PeekArgs),
    Send(send::SendArgs),
    Type(send::TypeArgs),
    Paste(paste::PasteArgs),
    Wait(wait::WaitArgs),
    Turns(turns::TurnsArgs),
    Explain(turns::ExplainArgs),
    Broker(broker::BrokerArgs),
    Capture(broker::CaptureArgs),
    Deliver(broker::DeliverArgs),
    Relay(broker::RelayArgs),
    #[cfg(feature = "hotkeys")]
    Hotkeys(hotkeys::HotkeysArgs),
    Tail(tail::TailArgs),
    Kill(kill::KillArgs),
    Resize(kill::ResizeArgs),
    Bus(tail::BusArgs),
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
    Convert(convert::ConvertArgs),
    Verify(verify::VerifyArgs),
    Repair(repair::RepairArgs),
    Index(index::IndexArgs),
    BranchPoints(branch_points::BranchPointsArgs),
    Info(info::InfoArgs),
    Cassette(cassette::CassetteArgs),
    Test(test::TestArgs),
    Scrub(scrub::ScrubCommand),
    Probe(probe::ProbeArgs),
    Doctor(doctor::DoctorArgs),
    Completions(completions::CompletionsArgs),
    Man(man::ManArgs),
    /// Feed bytes to the terminal model and print the final screen
    Render(render::RenderArgs),
}

/// Runs a subcommand.
pub(crate) fn run(command: Command) -> Ending {
    match command {
        Command::Run(args) => run::run(&args),
        Command::Rec(args) => rec::run(&args),
        Command::Ls(args) => ls::run(&args),
        Command::Attach(args) => attach::run(&args),
        Command::Peek(args) => peek::run(&args),
        Command::Send(args) => send::run(&args),
        Command::Type(args) => send::run_type(&args),
        Command::Paste(args) => paste::run(&args),
        Command::Wait(args) => wait::run(&args),
        Command::Turns(args) => turns::run(&args),
        Command::Explain(args) => turns::run_explain(&args),
        Command::Broker(args) => broker::run(&args),
        Command::Capture(args) => broker::run_capture(&args),
        Command::Deliver(args) => broker::run_deliver(&args),
        Command::Relay(args) => broker::run_relay(&args),
        #[cfg(feature = "hotkeys")]
        Command::Hotkeys(args) => hotkeys::run(&args),
        Command::Tail(args) => tail::run(&args),
        Command::Kill(args) => kill::run(&args),
        Command::Resize(args) => kill::run_resize(&args),
        Command::Bus(args) => tail::run_bus(&args),
        #[cfg(feature = "net")]
        Command::Serve(args) => serve::run(&args),
        #[cfg(feature = "net")]
        Command::Connect(args) => connect::run(&args),
        Command::Snapshot(args) => snapshot::run(&args),
        Command::Play(args) => play::run(&args),
        #[cfg(feature = "tui")]
        Command::View(args) => view::run(&args),
        #[cfg(feature = "tui")]
        Command::Dash(args) => dash::run(&args),
        #[cfg(feature = "web")]
        Command::Web(args) => web::run(&args),
        Command::Convert(args) => convert::run(&args),
        Command::Verify(args) => verify::run(&args),
        Command::Repair(args) => repair::run(&args),
        Command::Index(args) => index::run(&args),
        Command::BranchPoints(args) => branch_points::run(&args),
        Command::Info(args) => info::run(&args),
        Command::Cassette(args) => cassette::run(&args),
        Command::Test(args) => test::run(&args),
        Command::Scrub(args) => scrub::run(&args),
        Command::Probe(args) => probe::run(&args),
        Command::Doctor(args) => doctor::run(&args),
        Command::Completions(args) => completions::run(&args),
        Command::Man(args) => man::run(&args),
        Command::Render(args) => outcome(render::run(&args), args.json),
    }
}

/// The ending of a command that reports its errors as a chain of causes.
fn outcome(result: anyhow::Result<()>, as_json: bool) -> Ending {
    let Err(e) = result else { return Ending::Code(0) };
    match e.root_cause().downcast_ref::<std::io::Error>() {
        Some(io) if io.kind() == std::io::ErrorKind::BrokenPipe => output_failed(io),
        Some(io) if io.kind() == std::io::ErrorKind::NotFound => {
            complain(as_json, serde_json::json!({}), format_args!("{e:#}"));
            Ending::Code(code::NOT_FOUND)
        }
        _ => {
            complain(as_json, serde_json::json!({}), format_args!("{e:#}"));
            Ending::Code(code::IO)
        }
    }
}
