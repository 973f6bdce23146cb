// SPDX-License-Identifier: PostgreSQL
//! Ports for programs that cannot choose one themselves.

use std::net::TcpListener;
use std::sync::atomic::{AtomicU32, Ordering};

/// Below the ports that the kernel assigns to connections and listeners without a port of their own
/// (ip_local_port_range).
const FIRST: u32 = 20_000;
const COUNT: u32 = 12_000;

/// A port of 127.0.0.1 on which nobody listens and which this process has given to no other caller. Other
/// processes start elsewhere.
pub fn free_port() -> u16 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let begin = std::process::id().wrapping_mul(193);
    for _ in 0..COUNT {
        let next = begin.wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed));
        let port = u16::try_from(FIRST + next % COUNT).unwrap();
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
    panic!("no port from {FIRST} on is free");
}
