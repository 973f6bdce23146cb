// SPDX-License-Identifier: PostgreSQL
//! `tally serve`: the last minutes as a page that goes on, and everything since the segment was
//! made as metrics. Nothing can be changed by it.
//!
//! [`keeper`] is the one thread that looks at the server; [`http`] brings it questions.

mod gate;
mod history;
mod http;
mod keeper;
mod listen;
mod metrics;
mod page;
mod run;

use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::mpsc::channel;

use serde::Serialize;

use crate::cli::ServeArgs;
use crate::error::Error;
use crate::target;
use gate::Gate;
use keeper::{Keeper, Settings};
use listen::Listener;

pub use listen::Place;

/// Where it can be seen (docs/json.md).
#[derive(Debug, Serialize)]
struct Serving<'s> {
    page: &'s str,
    metrics: String,
    segment: String,
    token: bool,
}

/// Serve until a signal asks for the end.
pub fn run(args: &ServeArgs) -> Result<(), Error> {
    let token = args.token_file.as_deref().map(read_token).transpose()?;
    if !args.listen.is_local() && token.is_none() {
        return Err(Error::Usage(
            "whoever reaches this address could read the statements of the server: --token-file \
             names a file with a secret (`openssl rand -hex 32 >FILE; chmod 600 FILE`), or \
             --listen an address of this machine alone, such as 127.0.0.1:9188"
                .into(),
        ));
    }
    let path = target::path(args.target.as_deref())?;
    // Said now, rather than on the page.
    drop(segment::Segment::open(&path)?);
    let listener = Listener::open(&args.listen)?;
    say(args, &listener.url()?, &path, token.is_some())?;
    let gate = Gate { own_names_only: is_tcp(&args.listen) && args.listen.is_local(), token };
    let settings = Settings {
        interval: args.interval,
        history: args.history,
        statements: args.statements.unwrap_or(0) as usize,
    };
    let (questions, asked) = channel();
    let keeper = std::thread::Builder::new()
        .name("keeper".to_string())
        .spawn(move || Keeper::new(path, &settings).work(&asked))?;
    let served = http::serve(listener, gate, questions);
    // It has ended with the last who could ask.
    if keeper.join().is_err() {
        return Err(Error::Failed("the thread that looks at the server has failed".into()));
    }
    served
}

fn is_tcp(place: &Place) -> bool {
    matches!(place, Place::Tcp(_))
}

fn say(args: &ServeArgs, url: &str, path: &Path, token: bool) -> Result<(), Error> {
    let mut out = std::io::stdout().lock();
    let metrics = match &args.listen {
        Place::Tcp(_) => format!("{url}metrics"),
        Place::Unix(_) => url.to_string(),
    };
    if args.json {
        let segment = path.display().to_string();
        serde_json::to_writer(&mut out, &Serving { page: url, metrics, segment, token })?;
        writeln!(out)?;
    } else {
        let once = if token { "?token=..." } else { "" };
        writeln!(out, "page     {url}{once}\nmetrics  {metrics}\nCtrl-C ends it")?;
    }
    Ok(out.flush()?)
}

fn read_token(path: &Path) -> Result<String, Error> {
    let named = |why: &dyn std::fmt::Display| Error::Failed(format!("{}: {why}", path.display()));
    let meta = std::fs::metadata(path).map_err(|error| named(&error))?;
    if meta.is_file() && meta.permissions().mode() & 0o077 != 0 {
        return Err(named(&"others can read this token; chmod 600 makes it yours alone"));
    }
    let text = std::fs::read_to_string(path).map_err(|error| named(&error))?;
    gate::token(&text).map_err(|why| named(&why))
}
