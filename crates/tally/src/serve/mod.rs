// SPDX-License-Identifier: PostgreSQL
//! `tally serve`: the last minutes as a page that goes on, and everything since the segment was
//! made as metrics. Nothing can be changed by it.
//!
//! [`collector`] is the one thread that looks at the server; [`http`] brings it questions.

mod args;
mod collector;
mod gate;
mod history;
mod http;
mod listen;
mod metrics;
mod page;
mod run;

use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::mpsc::channel;

use serde::Serialize;

use collector::{Collector, Settings};
use error::Error;
use gate::Gate;
use listen::Listener;
use live::target;

pub use args::ServeArgs;

pub use listen::Place;

/// Where it can be seen (docs/reference-json.md).
#[derive(Debug, Serialize)]
struct Serving {
    page: String,
    metrics: String,
    segment: String,
    token: bool,
}

/// Serve until a signal asks for the end.
pub fn run(args: &ServeArgs) -> Result<(), Error> {
    let token = token(args)?;
    if !args.listen.is_local() && args.token_file.is_none() {
        return Err(Error::Usage(
            "anybody who reaches this address could read the server's statements: give \
             --token-file a file with a secret (`openssl rand -hex 32 >FILE; chmod 600 FILE`), or \
             --listen a loopback address such as 127.0.0.1:9188"
                .into(),
        ));
    }
    let place = target::segment_path(args.target.as_deref())?;
    // Said now, rather than on the page.
    drop(segment::Segment::open(&place)?);
    let listener = Listener::open(&args.listen)?;
    say(args, &listener.url()?, place.path(), &token)?;
    let gate = Gate {
        own_names_only: is_tcp(&args.listen) && args.listen.is_local(),
        cookie: gate::cookie_name(listener.port()?),
        token: token.secret().map(str::to_string),
    };
    let settings = Settings {
        interval: args.interval,
        history: args.history,
        statements: args.statements.unwrap_or(0) as usize,
    };
    let (questions, asked) = channel();
    let collector = std::thread::Builder::new()
        .name("collector".to_string())
        .spawn(move || Collector::new(place, &settings).work(&asked))?;
    let served = http::serve(listener, gate, questions);
    // It has ended with the last who could ask.
    if collector.join().is_err() {
        return Err(Error::Failed("the thread that reads the server has failed".into()));
    }
    served
}

fn is_tcp(place: &Place) -> bool {
    matches!(place, Place::Tcp(_))
}

/// What has to be known to be let in.
#[derive(Debug)]
enum Token {
    /// Nothing: the socket is its owner's alone, or --no-token was given.
    None,
    /// Made for this run; told once, to who started it.
    Random(String),
    /// The user's own, who knows it.
    File(String),
}

impl Token {
    fn secret(&self) -> Option<&str> {
        match self {
            Token::None => None,
            Token::Random(secret) | Token::File(secret) => Some(secret),
        }
    }
}

fn token(args: &ServeArgs) -> Result<Token, Error> {
    Ok(match &args.token_file {
        Some(path) => Token::File(read_token(path)?),
        None if args.no_token || !is_tcp(&args.listen) => Token::None,
        None => Token::Random(gate::random_token()),
    })
}

fn say(args: &ServeArgs, url: &str, path: &Path, token: &Token) -> Result<(), Error> {
    let mut out = view::escape::stdout();
    let metrics = match &args.listen {
        Place::Tcp(_) => format!("{url}metrics"),
        Place::Unix(_) => url.to_string(),
    };
    let secret = match token {
        Token::Random(secret) => format!("?token={secret}"),
        _ => String::new(),
    };
    if args.json {
        let segment = path.display().to_string();
        let (page, token) = (format!("{url}{secret}"), token.secret().is_some());
        serde_json::to_writer(&mut out, &Serving { page, metrics, segment, token })?;
        writeln!(out)?;
        return Ok(out.flush()?);
    }
    let (once, how) = match (token, &args.listen) {
        (Token::None, Place::Tcp(_)) => ("", "; any user of this machine can read it"),
        (Token::None, Place::Unix(_)) => ("", "; this user alone can read it"),
        (Token::Random(_), _) => (&*secret, ", with Authorization: Bearer and that token"),
        (Token::File(_), _) => ("?token=...", ", with Authorization: Bearer and the file's token"),
    };
    writeln!(out, "Open {url}{once}\nmetrics  {metrics}{how}\nCtrl-C stops it")?;
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
