// SPDX-License-Identifier: PostgreSQL
//! The addresses that `tally serve` prints at its start.

use crate::access::Access;
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

/// The address of a path; a socket has one address for all paths.
pub(super) fn address(
    args: &ServeArgs,
    listener: Option<&Listener>,
    path: &str,
) -> Result<Option<String>, Error> {
    let url = listener.map(|listener| listener.url(args.tls_cert.is_some())).transpose()?;
    let path = if is_tcp(&args.listen) { path } else { "" };
    Ok(url.map(|url| url + path))
}

pub(super) fn print_addresses(
    args: &ServeArgs,
    listener: Option<&Listener>,
    serving: Serving,
    access: &Access,
) -> Result<(), Error> {
    let mut out = view::escape::stdout();
    let url = address(args, listener, "")?;
    let secret = match access {
        Access::Printed(secret) => format!("?token={secret}"),
        _ => String::new(),
    };
    if args.json {
        let (page, token) = (url.map(|url| url + &secret), access.needs_token());
        serde_json::to_writer(&mut out, &Serving { page, token, ..serving })?;
        writeln!(out)?;
        return Ok(out.flush()?);
    }
    let (once, how) = match (access, &args.listen) {
        (Access::Anybody, Address::Tcp(_)) => ("", "; any user on this machine can read it"),
        (Access::Anybody, _) => ("", "; only this user can read it"),
        (Access::Printed(_), _) => {
            (&*secret, ", with the header Authorization: Bearer and this token")
        }
        (Access::Listed(_), _) => {
            ("?token=...", ", with the header Authorization: Bearer and the token in the file")
        }
    };
    if let Some(url) = url {
        writeln!(out, "Open {url}{once}")?;
    }
    if let Some(metrics) = serving.metrics {
        writeln!(out, "metrics  {metrics}{how}")?;
    }
    if let Access::Listed(file) = access {
        let users = file.users();
        let names: Vec<&str> = users.iter().filter_map(|user| user.name.as_deref()).collect();
        if !names.is_empty() {
            writeln!(out, "users    {}", names.join(", "))?;
        }
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
