// SPDX-License-Identifier: PostgreSQL
//! Tests that every cloud must pass, through a proxy that fails.

use super::proxy::{Fault, Proxy};
use super::recorder::{assert_same, MIDNIGHT, SECOND};
use super::{origin, read, superseded, Shipment};
use ship::{Bucket, Claim, Error};
use std::time::Duration;

/// The cloud's addresses begin with the scheme; it has a bucket "bucket", and is reached through the proxy.
pub fn every_interval_arrives_once(scheme: &str, proxy: &Proxy) {
    conditional_writes(scheme, proxy);
    faults(scheme, proxy);
    refusals(scheme, proxy);
}

fn conditional_writes(scheme: &str, proxy: &Proxy) {
    let bucket = Bucket::open(&format!("{scheme}://bucket/owners test")).unwrap();
    let spools: Vec<_> = (0..2).map(|_| tempfile::tempdir().unwrap()).collect();
    let who = |at: usize| ship::Spool::open(spools[at].path()).unwrap().claimant("machine");
    let claim = |at, take| ship::claim(&bucket, &origin(), &who(at), take, ship::now_us()).unwrap();
    // The confirmation of the first write is lost, but the object is ours all the same.
    proxy.set(&[Fault::AnswerLost]);
    let lost = ship::claim(&bucket, &origin(), &who(0), false, ship::now_us()).unwrap_err();
    assert!(lost.may_pass(), "{lost}");
    assert_eq!(claim(0, false), Claim::Ours(1));
    assert!(matches!(claim(1, false), Claim::Other(_)));
    assert_eq!(claim(1, true), Claim::Ours(2));
    assert_eq!(claim(0, true), Claim::Ours(1));
    // If two replace the same version, only one succeeds.
    let (_, version) = bucket.get(&origin().owner()).unwrap().unwrap();
    assert!(bucket.replace(&origin().owner(), "one".into(), version.clone()).unwrap());
    assert!(!bucket.replace(&origin().owner(), "two".into(), version).unwrap());
    assert_eq!(&bucket.get(&origin().owner()).unwrap().unwrap().0[..], b"one");
}

fn faults(scheme: &str, proxy: &Proxy) {
    let folder = tempfile::tempdir().unwrap();
    let url = &format!("{scheme}://bucket/a/b");
    let mut shipment = Shipment::new(&folder.path().join("spool"), url, MIDNIGHT + 3300 * SECOND);
    let all = [
        Fault::Status(500),
        Fault::Status(503),
        Fault::AnswerLost,
        Fault::Cut,
        Fault::Slow,
        Fault::None,
        Fault::None,
    ];
    let failures = std::cell::Cell::new(0);
    let ship = |shipment: &mut Shipment| loop {
        let passed = shipment.pass.run(&ship::now_us);
        failures.set(failures.get() + usize::from(passed.problem.is_some()));
        match passed.problem {
            Some(error) => assert!(error.may_pass(), "{error}"),
            None if passed.more => {}
            None => break,
        }
    };
    for round in 0..3 {
        shipment.maker.seconds(130);
        shipment.next_minute();
        // In each round, requests meet different faults.
        let mut faults: Vec<Fault> = all.iter().cycle().take(40).copied().collect();
        faults.rotate_left(round * 2);
        proxy.set(&faults);
        ship(&mut shipment);
        proxy.set(&[]);
        ship(&mut shipment);
        let (frames, sum) = read(url);
        // The last second is in the journal.
        assert_eq!(frames, 131 * (round + 1) - 1, "round {round}");
        assert!(sum.is_some());
    }
    assert!(failures.get() > 20, "{failures:?}");
    let sum = shipment.maker.sum.clone().unwrap();
    shipment.next_minute();
    ship(&mut shipment);
    let (_, found) = read(url);
    assert_same(&sum, &found.unwrap(), 9.0);
    shipment.pass.grace = Duration::ZERO;
    proxy.set(&all);
    ship(&mut shipment);
    ship(&mut shipment);
    assert_eq!(superseded(shipment.pass.bucket()), 0);
    let before = proxy.requests();
    ship(&mut shipment);
    assert_eq!(proxy.requests() - before, 1, "with nothing to send, only the owner is read");
}

fn refusals(scheme: &str, proxy: &Proxy) {
    let spool = tempfile::tempdir().unwrap();
    let who = ship::Spool::open(spool.path()).unwrap().claimant("machine");
    let claim = |place: &str| refusal(&format!("{scheme}://{place}"), &who);
    let absent = claim("no-such-bucket/x");
    assert!(matches!(absent, Error::Refused { .. }), "{absent:?}");
    assert!(absent.to_string().contains("Create the bucket"), "{absent}");
    proxy.set(&[Fault::Status(403)]);
    let refused = claim("bucket/refused");
    assert!(matches!(refused, Error::Refused { .. }), "{refused:?}");
    assert!(refused.to_string().contains("permission"), "{refused}");
    for error in [absent, refused] {
        assert!(!format!("{error} {error:?}").contains("SECRET"), "{error:?}");
    }
}

/// Tests a server that does not exist.
pub fn unavailable(url: &str) {
    let spool = tempfile::tempdir().unwrap();
    let who = ship::Spool::open(spool.path()).unwrap().claimant("machine");
    let absent = refusal(url, &who);
    assert!(absent.may_pass(), "{absent}");
}

fn refusal(url: &str, who: &ship::Claimant) -> Error {
    let bucket = Bucket::open(url).unwrap();
    ship::claim(&bucket, &origin(), who, false, ship::now_us()).unwrap_err()
}

/// A port that no process listens on.
pub fn free_port() -> u16 {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}
