// SPDX-License-Identifier: PostgreSQL
//! `tally serve` and clients that occupy connections: too many of them, and some that never finish a request.

use crate::support;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use crate::support::serving::{self as serve, Serving};

/// The limit of connections whose client has passed the gate (serve/lobby.rs).
const MAX_CONNECTIONS: usize = 64;

/// The status of the response to a request, after which the connection stays open unless it was refused; `None`
/// if it was closed.
fn status(stream: &mut TcpStream) -> Option<String> {
    stream.write_all(b"HEAD /nothing HTTP/1.1\r\nHost: localhost\r\n\r\n").ok()?;
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).ok()?;
        head.push(byte[0]);
    }
    Some(String::from_utf8(head).unwrap().split(' ').nth(1).unwrap().to_string())
}

#[test]
fn connections_beyond_the_limit_are_refused_until_one_ends() {
    let cluster = serve::quiet();
    let serving = Serving::start(&cluster, &[]);
    let mut all: Vec<TcpStream> = Vec::new();
    // Connections without a request for a while are closed, so all send requests until no others are admitted.
    support::eventually("all places are taken", || {
        all.retain_mut(|stream| status(stream).is_some());
        while all.len() < MAX_CONNECTIONS {
            let mut next = serving.connect();
            // The place of a closed connection may become free a moment later.
            if status(&mut next).as_deref() != Some("404") {
                return false;
            }
            all.push(next);
        }
        status(&mut serving.connect()).as_deref() == Some("503")
    });
    drop(all.pop());
    support::eventually("a connection is accepted again", || {
        status(&mut serving.connect()).as_deref() == Some("404")
    });
    drop(all);
    serving.stop();
}

#[test]
fn a_client_that_sends_a_byte_at_a_time_is_cut_off_and_delays_nobody() {
    let cluster = serve::quiet();
    let serving = Serving::start(&cluster, &[]);
    let mut slow: Vec<TcpStream> = (0..MAX_CONNECTIONS - 1).map(|_| serving.connect()).collect();
    for stream in &mut slow {
        stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nX-Slow: ").unwrap();
    }
    assert!(serving.metrics().contains("pgtally_up 1"), "others have to wait");
    while !slow.is_empty() {
        // Other clients get responses meanwhile; a head that never ends gets none.
        slow.retain_mut(|stream| {
            stream.set_nonblocking(true).unwrap();
            let open = match stream.read(&mut [0; 256]) {
                Ok(0) => false,
                Ok(_) => panic!("there was an answer to half a question"),
                Err(error) => error.kind() == ErrorKind::WouldBlock,
            };
            stream.set_nonblocking(false).unwrap();
            open && stream.write_all(b"x").is_ok()
        });
        assert!(serving.metrics().contains("pgtally_up 1"), "others have to wait");
        std::thread::sleep(Duration::from_millis(200));
    }
    serving.stop();
}

#[test]
fn a_request_head_that_is_too_long_is_refused() {
    let cluster = serve::quiet();
    let serving = Serving::start(&cluster, &[]);
    let lines = "X-Much: more\r\n".repeat(100);
    for (what, request) in [
        ("an address", format!("GET /{} HTTP/1.1\r\nHost: localhost\r\n\r\n", "x".repeat(20_000))),
        (
            "a header",
            format!("GET / HTTP/1.1\r\nHost: localhost\r\nX: {}\r\n\r\n", "x".repeat(20_000)),
        ),
        ("headers", format!("GET / HTTP/1.1\r\nHost: localhost\r\n{lines}\r\n")),
    ] {
        let answer = serving.raw(&request);
        let line = answer.lines().next().unwrap_or("");
        assert!(["431", "414"].iter().any(|status| line.contains(status)), "{what}: {line:?}");
        assert!(serving.metrics().contains("pgtally_up 1"), "after {what}");
    }
    serving.stop();
}
