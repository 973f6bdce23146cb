// SPDX-License-Identifier: PostgreSQL
//! `tally serve` and clients that take up connections: too many of them, and some that never finish a
//! request.

use crate::support;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use crate::support::serving::{self as serve, Serving};

/// The limit of connections (serve/http.rs).
const MAX_CONNECTIONS: usize = 64;

/// Whether the other end has closed the connection without an answer.
fn is_turned_away(stream: &mut TcpStream) -> bool {
    let mut answer = [0; 16];
    match stream.read(&mut answer) {
        Ok(0) => true,
        Ok(_) => false,
        Err(error) => error.kind() == ErrorKind::ConnectionReset,
    }
}

#[test]
fn connections_beyond_the_limit_are_refused_until_one_ends() {
    let cluster = serve::quiet();
    let serving = Serving::start(&cluster, &[]);
    let mut all: Vec<TcpStream> = (0..MAX_CONNECTIONS).map(|_| serving.connect()).collect();
    for _ in 0..3 {
        assert!(is_turned_away(&mut serving.connect()), "more than {MAX_CONNECTIONS} were let in");
    }
    // Accepted connections are served.
    let request = b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    let mut last = all.pop().unwrap();
    last.write_all(request).unwrap();
    let mut answer = String::new();
    last.read_to_string(&mut answer).unwrap();
    assert!(answer.contains("pgtally_up 1"), "{answer}");
    // One connection has ended: another is accepted.
    support::eventually("a connection is accepted again", || {
        let mut next = serving.connect();
        next.write_all(request).is_ok() && {
            let mut answer = String::new();
            next.read_to_string(&mut answer).is_ok() && answer.contains("pgtally_up 1")
        }
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
        // Other clients get answers meanwhile; a head that never ends gets none.
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
