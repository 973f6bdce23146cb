// SPDX-License-Identifier: PostgreSQL
//! Answers requests from the known results, without waiting for the engine.

use std::sync::mpsc::Receiver;

use error::Error;
use fleet_sql::{HostFilter, Window};
use hyper::StatusCode;
use jiff::tz::TimeZone;
use report::fleet::document;
use segment::clock::realtime_ns;
use view::document::Live;

use super::super::metrics;
use super::super::page::FIGURES;
use super::super::request::{HttpReply, Refusal, Request, Resource};
use super::board::Board;

/// How often a page asks for newer results, seconds. It gets them once they are there.
const PAUSE: f64 = 2.0;

/// Answers until the channel of requests is closed.
pub fn work(board: &Board, requests: &Receiver<Request>) {
    let whole = board.whole();
    let started = realtime_ns();
    for request in requests {
        let answer = answer(board, &whole, started, request.what, &request.query);
        // Fails if the client has disconnected.
        let _ = request.answer.send(answer);
    }
}

fn answer(
    board: &Board,
    whole: &HostFilter,
    started: u64,
    what: Resource,
    query: &str,
) -> Result<HttpReply, Refusal> {
    let only = part(whole, query).map_err(|why| (StatusCode::BAD_REQUEST, why))?;
    let unavailable = |why: String| (StatusCode::SERVICE_UNAVAILABLE, why);
    let (known, changes) = board.view(&only).map_err(unavailable)?;
    if let Resource::Metrics(form) = what {
        let body = metrics::write(&super::metrics::families(&known), form, None).into();
        return Ok(HttpReply { body, tag: None, policy: None });
    }
    let mut made = document(&known, &TimeZone::system());
    if let Some(document) = &mut made {
        document.live = Some(Live { url: figures(query), seconds: Some(PAUSE) });
    }
    let failure = known.tables.iter().find_map(|table| table.failure.as_ref());
    let why = failure.map_or("the queries are still running", |failure| &failure.text);
    let tag = format!("\"{started:x}-{changes}\"");
    let answer = match what {
        Resource::Report | Resource::ReportWithParts => {
            HttpReply::report(made.as_ref(), why, Some(tag))
        }
        _ => HttpReply::page(made.as_ref(), why),
    };
    answer.map_err(|error: Error| unavailable(error.to_string()))
}

/// URL from which a page of this part gets newer results.
fn figures(query: &str) -> String {
    if query.is_empty() {
        FIGURES.to_string()
    } else {
        format!("{FIGURES}?{query}")
    }
}

/// The part of the fleet that the query string of a URL selects, within the part that the command line selects.
fn part(whole: &HostFilter, query: &str) -> Result<HostFilter, String> {
    let mut only = whole.clone();
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let mut set = |place: fn(&mut HostFilter) -> &mut Option<String>, value: &str| {
            let bound = place(&mut whole.clone()).take();
            if let Some(bound) = bound.filter(|bound| bound != value) {
                return Err(format!("only {bound} is served here"));
            }
            *place(&mut only) = Some(value.to_string());
            Ok(())
        };
        let value = value.replace("%2F", "/");
        match (name, value.split_once('/')) {
            // Results name a host like this, because several clusters may have hosts of the same name.
            ("host", Some((cluster, host))) => {
                set(|only| &mut only.cluster, cluster)?;
                set(|only| &mut only.host, host)?;
            }
            ("host", None) => set(|only| &mut only.host, &value)?,
            ("cluster", _) => set(|only| &mut only.cluster, &value)?,
            _ => return Err("the URL must be /, /?host=HOST or /?cluster=CLUSTER&host=HOST".into()),
        }
    }
    // Refuses names that would have to be encoded in a URL.
    Window::new(0, 1, only).map(|window| window.only)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_names_a_part_within_what_is_served() {
        let all = HostFilter::default();
        assert_eq!(part(&all, ""), Ok(all.clone()));
        let one = HostFilter { cluster: Some("shop".into()), host: Some("db-1".into()) };
        assert_eq!(part(&all, "cluster=shop&host=db-1"), Ok(one.clone()));
        for address in ["host=shop/db-1", "host=shop%2Fdb-1"] {
            assert_eq!(part(&all, address), Ok(one.clone()));
        }
        for bad in ["host=", "host=a'b", "host=a%20b", "hots=a"] {
            assert!(part(&all, bad).is_err(), "{bad}");
        }
        let shop = HostFilter { cluster: Some("shop".into()), host: None };
        assert_eq!(part(&shop, "host=db-1"), Ok(one));
        assert!(part(&shop, "cluster=other").unwrap_err().contains("only shop"));
        assert!(part(&shop, "host=other/db-1").unwrap_err().contains("only shop"));
        assert_eq!(figures("host=a"), "report.json?host=a");
    }
}
