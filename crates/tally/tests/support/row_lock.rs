// SPDX-License-Identifier: PostgreSQL
//! A server whose sessions wait for one row, until the test ends that.

use postgres::{Client, NoTls};
use scratch::Cluster;

use super::{plain, start};

/// Waits for the row if another session has updated it.
pub const UPDATE: &str = "update orders set v = v + 1 where id = 1";

/// A server with the row, without interference from deadlock checks and autovacuum.
pub fn server() -> Cluster {
    let cluster = start(
        plain()
            .setting("shared_preload_libraries", "pg_tally")
            .setting("autovacuum", "off")
            .setting("deadlock_timeout", "10min"),
    );
    cluster
        .psql("create table orders (id int primary key, v int); insert into orders values (1, 0)")
        .unwrap();
    cluster
}

/// A session with this application_name, and its PID.
pub fn session(cluster: &Cluster, application: &str) -> (Client, i32) {
    let mut config = cluster.config();
    let mut client = config.application_name(application).connect(NoTls).unwrap();
    let pid = super::pid_of(&mut client);
    (client, pid)
}
