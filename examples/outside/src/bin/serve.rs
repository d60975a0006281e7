//! A server with an authenticator and a program of its own; a client of it, with a tap.

use std::io;
use std::time::Duration;
use tapdeck::backend::Console;
use tapdeck::server::{Authority, Right, Server};
use tapdeck::{Credentials, Event, Role, Session, row};

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
    let server = Server::builder()
        .auth(|secret: &str| (secret == "open sesame").then(|| Authority::of(Role::Bot).and(Right::Open)))
        .listen("quic://127.0.0.1:0")
        .backend("adder", adder)
        .record_into("runs")
        .on_session(|id| println!("session {id} begins"))
        .start()?;
    let (address, fingerprint) = (&server.addresses()[0], server.fingerprint().unwrap_or_default());

    let wrong = Credentials::token("a guess").fingerprint(fingerprint);
    let refused = Session::builder(["adder"]).at(address, wrong, "adder")?.spawn();
    println!("{}", refused.expect_err("a guess lets no client in"));

    let right = Credentials::token("open sesame").fingerprint(fingerprint);
    let session = Session::builder(["adder"])
        .at(address, right, "adder")?
        .tap(|event| {
            if let Event::Output { bytes, .. } = event {
                println!("tap: {:?}", String::from_utf8_lossy(bytes));
            }
        })
        .spawn()?;
    session.type_line("40")?;
    session.type_line("2")?;
    println!("{}", session.wait_for(row("^sum 42$"), Duration::from_secs(10))?);
    session.stop()?;
    server.stop();
    Ok(())
}
