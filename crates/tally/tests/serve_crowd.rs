// SPDX-License-Identifier: PostgreSQL
//! `tally serve` and those who take up connections: too many of them, and who never come to the
//! end of what they say.

mod support;

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use support::serving::{self as serve, Serving};

/// As many connections as are let in (serve/http.rs).
const ROOM: usize = 64;

/// Whether the other end has closed it, without a word.
fn is_turned_away(stream: &mut TcpStream) -> bool {
    let mut answer = [0; 16];
    match stream.read(&mut answer) {
        Ok(0) => true,
        Ok(_) => false,
        Err(error) => error.kind() == ErrorKind::ConnectionReset,
    }
}

#[test]
fn who_comes_when_all_places_are_taken_is_turned_away_until_there_is_one() {
    let cluster = serve::quiet();
    let serving = Serving::start(&cluster, &[]);
    let mut all: Vec<TcpStream> = (0..ROOM).map(|_| serving.connect()).collect();
    for _ in 0..3 {
        assert!(is_turned_away(&mut serving.connect()), "more than {ROOM} were let in");
    }
    // Those who are in are served.
    let request = b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    let mut last = all.pop().unwrap();
    last.write_all(request).unwrap();
    let mut answer = String::new();
    last.read_to_string(&mut answer).unwrap();
    assert!(answer.contains("pgtally_up 1"), "{answer}");
    // That one has left: its place is the next one's.
    support::eventually("there is room again", || {
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
fn who_says_a_letter_at_a_time_is_cut_off_and_holds_nobody_up() {
    let cluster = serve::quiet();
    let serving = Serving::start(&cluster, &[]);
    let mut slow: Vec<TcpStream> = (0..ROOM - 1).map(|_| serving.connect()).collect();
    for stream in &mut slow {
        stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nX-Slow: ").unwrap();
    }
    let mut asked = 0;
    let begun = Instant::now();
    while !slow.is_empty() {
        // Until it is cut off, an answer comes; a head that never ends gets none.
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
        assert!(serving.metrics().contains("pgtally_up 1"), "who asks in one word has to wait");
        asked += 1;
        std::thread::sleep(Duration::from_millis(200));
    }
    assert!(asked > 3, "all were cut off within {:?}", begun.elapsed());
    serving.stop();
}

#[test]
fn a_head_that_is_too_long_is_refused_whatever_it_consists_of() {
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
