// SPDX-License-Identifier: PostgreSQL
//! A refresh of the full-screen view on a server under load sends only the difference, in one write.

use crate::support;
use std::time::Duration;

use crate::support::pty::Pty;
use scratch::Load;

const BEGIN: &[u8] = b"\x1b[?2026h";
const END: &[u8] = b"\x1b[?2026l";
/// Number of refreshes that are checked.
const REFRESHES: usize = 30;

fn find(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes.windows(wanted.len()).position(|window| window == wanted)
}

/// The refreshes, and what was sent outside them.
fn parts(mut bytes: &[u8]) -> (Vec<&[u8]>, Vec<&[u8]>) {
    let (mut inside, mut outside) = (Vec::new(), Vec::new());
    while let Some(begin) = find(bytes, BEGIN) {
        outside.push(&bytes[..begin]);
        let Some(end) = find(&bytes[begin..], END) else { break };
        inside.push(&bytes[begin + BEGIN.len()..begin + end]);
        bytes = &bytes[begin + end + END.len()..];
    }
    outside.push(bytes);
    (inside, outside)
}

#[test]
fn a_refresh_sends_only_the_difference_in_one_write() {
    let cluster = support::shared();
    cluster.fill(&Load::TpcB, 1).unwrap();
    let load = cluster.pgbench().load(Load::TpcB).clients(8).jobs(2);
    let mut load = load.duration(Duration::from_secs(3600)).spawn().unwrap();
    let segment = support::segment(&cluster);
    let segment = segment.to_str().unwrap();
    for (width, height) in [(80, 24), (200, 50)] {
        let mut pty = Pty::run(
            width,
            height,
            &[env!("CARGO_BIN_EXE_tally"), "top", "--no-config", "--interval", "0.2", segment],
        );
        pty.until("the refreshes", |bytes| parts(bytes).0.len() > REFRESHES + 5);
        pty.press("q");
        let (code, bytes) = pty.end();
        assert_eq!(code, Some(0));
        let (refreshes, outside) = parts(&bytes);
        // The first refresh with figures is large: the frame before it was nearly empty.
        let sizes: Vec<usize> = refreshes.iter().map(|bytes| bytes.len()).collect();
        let first = sizes[..3].iter().max().unwrap();
        let mut later = sizes[5..5 + REFRESHES].to_vec();
        later.sort_unstable();
        let (median, most) = (later[REFRESHES / 2], later[REFRESHES - 1]);
        eprintln!(
            "{width}x{height}: a first screen {first} bytes, a refresh {median} bytes (at most {most})"
        );
        assert!(median * 10 < first * 9, "{sizes:?}");
        assert!(refreshes[3..].iter().all(|bytes| find(bytes, b"\x1b[2J").is_none()));
        let between = &outside[1..outside.len() - 1];
        assert!(between.iter().all(|bytes| bytes.is_empty()), "{between:?}");
        assert!(find(outside[outside.len() - 1], b"\x1b[?1049l").is_some(), "it is given back");
    }
    load.kill();
}
