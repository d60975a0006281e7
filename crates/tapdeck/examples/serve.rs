//! Serves sessions over the network, with an authenticator and a program of its own, and uses it
//! as a client.

#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::io;
use std::time::Duration;

use tapdeck::backend::Console;
use tapdeck::server::{Authority, Right, Server};
use tapdeck::{Credentials, Role, Session, row};

/// Adds up the numbers that are typed.
fn adder(console: &Console) -> io::Result<i32> {
    let mut sum = 0;
    console.emit(b"numbers?\r\n")?;
    while let Some(line) = console.read_line()? {
        sum += String::from_utf8_lossy(&line).trim().parse::<i64>().unwrap_or(0);
        console.emit(format!("sum {sum}\r\n").as_bytes())?;
    }
    Ok(0)
}

fn main() -> tapdeck::Result<()> {
    let folder = tempfile::tempdir().expect("a folder for the recordings");
    let server = Server::builder()
        .auth(|secret: &str| (secret == "open sesame").then(|| Authority::of(Role::Bot).and(Right::Open)))
        .listen("tls://127.0.0.1:0")
        .backend("adder", adder)
        .record_into(folder.path())
        .on_session(|id| println!("session {id} begins"))
        .start()?;
    let address = &server.addresses()[0];
    println!("listening at {address}");

    let who = Credentials::token("open sesame").fingerprint(server.fingerprint().unwrap_or_default());
    let session = Session::builder(["adder"]).at(address, who, "adder")?.spawn()?;
    session.type_line("40")?;
    session.type_line("2")?;
    println!("{}", session.wait_for(row("^sum 42$"), Duration::from_secs(10))?);
    session.stop()?;
    server.stop();
    println!("{} recordings", std::fs::read_dir(folder.path()).map_or(0, Iterator::count));
    Ok(())
}
