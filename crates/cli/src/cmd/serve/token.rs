//! `tapdeck serve token`: the tokens of network clients, and what each allows.

use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};
use serde_json::{Value, json};
use tapdeck::OutFile;
use tapdeck_core::WallTime;
use tapdeck_host::Clock;
use tapdeck_host::cassette::rfc3339;
use tapdeck_serve::tokens::{Scope, Token, Tokens};

use crate::ending::{Ending, print, print_json};
use crate::failure::{Failure, Result};
use crate::{human, parse};

/// Manage access tokens.
#[derive(Args)]
#[command(after_help = "\
A token is shown once, when you create it; the server stores only its digest. Revoking a token closes
the connections that use it.

Examples:
  tapdeck serve token add --name laptop -o laptop.token
  tapdeck serve token add --scope observe --name guest --expires 7d
  tapdeck serve token ls
  tapdeck serve token rm guest")]
pub(super) struct TokenArgs {
    #[command(subcommand)]
    command: TokenCommand,
}

#[derive(Subcommand)]
enum TokenCommand {
    /// Create a token and print it
    Add {
        /// Scopes: tty:open (run programs), tty:attach (join sessions), observe (view-only)
        #[arg(
            long,
            value_name = "SCOPE,…",
            value_delimiter = ',',
            default_value = "tty:open,tty:attach,observe"
        )]
        scope: Vec<Scope>,
        /// Name of the token
        #[arg(long, value_name = "NAME", value_parser = parse::session_name)]
        name: Option<String>,
        /// Lifetime, such as 12h or 7d [default: never expires]
        #[arg(long, value_name = "TIME", value_parser = parse::duration)]
        expires: Option<Duration>,
        /// Write the token to this file (mode 0600) instead of printing it
        #[arg(short, long, value_name = "FILE", value_parser = parse::file())]
        output: Option<PathBuf>,
        /// Replace an existing file
        #[arg(long, requires = "output")]
        overwrite: bool,
    },
    /// List tokens
    Ls {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Revoke a token
    Rm {
        /// Name of the token
        #[arg(value_name = "NAME")]
        name: String,
    },
}

pub(super) fn run(args: &TokenArgs) -> Result {
    let tokens = Tokens::at(Tokens::default_path());
    let failed = |e: std::io::Error| match e.kind() {
        std::io::ErrorKind::AlreadyExists => Failure::usage(e.to_string()),
        _ => Failure::io(format!("cannot use the list of tokens: {e}")),
    };
    let now = Clock::start().wall_start();
    match &args.command {
        TokenCommand::Add { scope, name, expires, output, overwrite } => {
            let scopes = Scope::ALL.into_iter().filter(|known| scope.contains(known)).collect();
            let ends = expires.map(|e| now + e);
            // Before the token is made: one that cannot be handed over must not be good.
            let create =
                |path: &PathBuf| OutFile::create(path, *overwrite).map_err(|e| Failure::write(path, &e));
            let file = output.as_ref().map(create).transpose()?;
            let (token, secret) = tokens.add(name.as_deref(), scopes, now, ends).map_err(failed)?;
            let (Some(mut file), Some(path)) = (file, output) else {
                print(format_args!("{secret}\n"));
                return Ok(Ending::Done);
            };
            if let Err(e) = writeln!(file, "{secret}").and_then(|()| file.commit()) {
                tokens.remove(&token.name).map_err(failed)?;
                return Err(Failure::write(path, &e));
            }
        }
        TokenCommand::Ls { json: true } => {
            let all = tokens.all().map_err(failed)?;
            let all: Vec<Value> = all.iter().map(|t| described(t, now)).collect();
            print_json(&Value::from(all));
        }
        TokenCommand::Ls { json: false } => {
            for token in tokens.all().map_err(failed)? {
                let scopes: Vec<String> = token.scopes.iter().map(Scope::to_string).collect();
                let until = match token.expires {
                    None => "for ever".to_owned(),
                    Some(_) if token.has_expired(now) => "expired".to_owned(),
                    Some(at) => format!("until {}", rfc3339(at)),
                };
                print(format_args!("{}  {}  {until}\n", human::printable(&token.name), scopes.join(",")));
            }
        }
        TokenCommand::Rm { name } => {
            if !tokens.remove(name).map_err(failed)? {
                return Err(Failure::not_found(format!("there is no token called {name:?}")));
            }
        }
    }
    Ok(Ending::Done)
}

fn described(token: &Token, now: WallTime) -> Value {
    json!({
        "name": token.name,
        "scopes": token.scopes.iter().map(Scope::to_string).collect::<Vec<_>>(),
        "created_ns": token.created.as_nanos(),
        "expires_ns": token.expires.map(WallTime::as_nanos),
        "expired": token.has_expired(now),
    })
}
