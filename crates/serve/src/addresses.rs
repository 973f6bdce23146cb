// SPDX-License-Identifier: PostgreSQL
//! The addresses that `tally serve` prints at its start.

use crate::args::ServeArgs;
use crate::listen::{Address, Listener};
use error::Error;
use serde::Serialize;
use std::io::Write;

/// The addresses, as `--json` prints them (docs/reference-json.md).
#[derive(Debug, Default, Serialize)]
pub(super) struct Serving {
    pub(super) page: Option<String>,
    pub(super) metrics: Option<String>,
    pub(super) trace: Option<String>,
    pub(super) otlp: Option<String>,
    pub(super) segment: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) engine: Option<String>,
    pub(super) token: bool,
}

pub(super) fn is_tcp(address: &Address) -> bool {
    matches!(address, Address::Tcp(_))
}

/// The secret that clients must send.
#[derive(Debug)]
pub(super) enum Token {
    /// None is required: a Unix-domain socket, or --no-token.
    None,
    /// Random, printed once at the start.
    Random(String),
    /// From the user's file.
    File(String),
}

impl Token {
    pub(super) fn secret(&self) -> Option<&str> {
        match self {
            Token::None => None,
            Token::Random(secret) | Token::File(secret) => Some(secret),
        }
    }
}

/// The address of a path; a socket has one address for all paths.
pub(super) fn address(
    args: &ServeArgs,
    listener: Option<&Listener>,
    path: &str,
) -> Result<Option<String>, Error> {
    let url = listener.map(Listener::url).transpose()?;
    let path = if is_tcp(&args.listen) { path } else { "" };
    Ok(url.map(|url| url + path))
}

pub(super) fn print_addresses(
    args: &ServeArgs,
    listener: Option<&Listener>,
    serving: Serving,
    token: &Token,
) -> Result<(), Error> {
    let mut out = view::escape::stdout();
    let url = address(args, listener, "")?;
    let secret = match token {
        Token::Random(secret) => format!("?token={secret}"),
        _ => String::new(),
    };
    if args.json {
        let (page, token) = (url.map(|url| url + &secret), token.secret().is_some());
        serde_json::to_writer(&mut out, &Serving { page, token, ..serving })?;
        writeln!(out)?;
        return Ok(out.flush()?);
    }
    let (once, how) = match (token, &args.listen) {
        (Token::None, Address::Tcp(_)) => ("", "; any user on this machine can read it"),
        (Token::None, _) => ("", "; only this user can read it"),
        (Token::Random(_), _) => {
            (&*secret, ", with the header Authorization: Bearer and this token")
        }
        (Token::File(_), _) => {
            ("?token=...", ", with the header Authorization: Bearer and the token in the file")
        }
    };
    if let Some(url) = url {
        writeln!(out, "Open {url}{once}")?;
    }
    if let Some(metrics) = serving.metrics {
        writeln!(out, "metrics  {metrics}{how}")?;
    }
    for (name, what) in
        [("traces   ", serving.trace), ("sent to  ", serving.otlp), ("engine   ", serving.engine)]
    {
        if let Some(what) = what {
            writeln!(out, "{name}{what}")?;
        }
    }
    writeln!(out, "Press Ctrl-C to stop")?;
    Ok(out.flush()?)
}
