// SPDX-License-Identifier: PostgreSQL
//! `tally serve`: serves the last few minutes as a live page, and totals since the segment was created as
//! metrics. Clients can only read, and trace a session if that is allowed. [`otlp`] sends the same metrics, and
//! the events, to a receiver. [`alert`] tells a person about problems.
//!
//! [`collector`] is the only thread that reads the server; [`http`] sends it requests. [`fleet`] answers the same
//! requests for many servers.

mod access;
mod addresses;
mod alert;
mod args;
mod collector;
pub mod dashboards;
mod door;
mod fleet;
mod gate;
mod history;
mod http;
mod listen;
mod lobby;
mod metrics;
mod otlp;
mod page;
mod request;
mod run;
mod tls;
mod tracing;
mod watched;

use std::sync::mpsc::channel;

use self::otlp::Otlp;
use alert::Alerts;
use collector::{Collector, CollectorSettings};
use door::Door;
use error::Error;
use listen::Listener;
use live::slow_executions::SlowExecutionFollower;
use live::target::SegmentSource;
use tracing::Tracing;

pub use args::ServeArgs;

use addresses::{address, print_addresses, Serving};
pub use listen::Address;

/// Serves until a signal arrives.
pub fn run(args: &ServeArgs) -> Result<(), Error> {
    let door = Door::open(args)?;
    let otlp = otlp_settings(args)?;
    if otlp.is_none() && args.alerts.alert.is_none() && args.listen == Address::None {
        return Err(Error::Usage(
            "--listen none requires --otlp or --alert; otherwise there is nothing to do".into(),
        ));
    }
    if !args.listen.is_local() && args.token_file.is_none() {
        return Err(Error::Usage(
            "anybody who can reach this address could read the server's statements; specify \
             --token-file with a file that holds a secret (`openssl rand -hex 32 >FILE; chmod 600 FILE`), or \
             --listen with a loopback address, such as 127.0.0.1:9188"
                .into(),
        ));
    }
    if args.parameters && args.no_token && addresses::is_tcp(&args.listen) {
        return Err(Error::Usage(
            "with --no-token, every user of this machine could read the values of parameters; leave it out, or specify \
             --token-file, or --listen with a Unix socket (unix:PATH)"
                .into(),
        ));
    }
    match args.fleet.fleet {
        true => self::fleet::run(args, door),
        false => server(args, otlp, door),
    }
}

/// Serves one server.
fn server(args: &ServeArgs, otlp: Option<otlp::OtlpSettings>, door: Door) -> Result<(), Error> {
    let interval = args.pace()?;
    let place = args.sampling.source(args.target.as_deref())?;
    if args.allow_trace && matches!(place, SegmentSource::Samples(..)) {
        place.file("--allow-trace")?;
    }
    if args.parameters {
        place.file("--parameters")?;
    }
    // Report errors now rather than on the page.
    let segment = place.open()?;
    if args.parameters {
        SlowExecutionFollower::default().attach(&segment)?;
    }
    drop(segment);
    let listener = Listener::open(&args.listen)?;
    let sent_to = otlp.as_ref().map(|otlp| otlp.metrics.shown());
    let otlp = otlp.map(|settings| Otlp::start(settings, &place)).transpose()?;
    let at = |path: &str| address(args, listener.as_ref(), path);
    let serving = Serving {
        metrics: at("metrics")?,
        trace: args.allow_trace.then(|| at("trace")).transpose()?.flatten(),
        otlp: sent_to,
        segment: Some(place.to_string()),
        ..Serving::default()
    };
    print_addresses(args, listener.as_ref(), serving, &door.access)?;
    let settings = CollectorSettings {
        interval,
        history: args.history,
        statements: args.statements.unwrap_or(0) as usize,
        health: args.health,
        parameters: args.parameters,
    };
    let alerts = args.alerts.settings()?;
    let alerts = alerts.map(|settings| Alerts::start(settings, place.clone())).transpose()?;
    let tracing = args.allow_trace.then(|| Tracing::new(&place)).transpose()?;
    let (requests, received) = channel();
    let collector = std::thread::Builder::new()
        .name("collector".to_string())
        .spawn(move || Collector::new(place, &settings, otlp).work(&received))?;
    let served = match listener {
        Some(listener) => {
            let gate = door.gate(args, &listener)?;
            http::serve(listener, gate, door.tls, requests, tracing)
        }
        None => {
            let served = http::until_signal();
            drop(requests);
            served
        }
    };
    if let Some(alerts) = alerts {
        alerts.finish();
    }
    // The collector ends when the last sender of requests is dropped.
    if collector.join().is_err() {
        return Err(Error::Failed("the thread that reads the server has failed".into()));
    }
    served
}

fn otlp_settings(args: &ServeArgs) -> Result<Option<otlp::OtlpSettings>, Error> {
    let Some(url) = &args.otlp else { return Ok(None) };
    let get = |name: &str| std::env::var(name).ok();
    otlp::OtlpSettings::read(url.as_deref(), args.otlp_interval, &get).map(Some)
}
