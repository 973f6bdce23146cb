// SPDX-License-Identifier: PostgreSQL
//! Servers that tests share, each test with a database and a role of its own. Only for tests that look at their
//! own sessions, statements and relations. A test that looks at the whole server, or that resets, reloads, stops,
//! kills or changes the level, has its own server.

use std::ops::Deref;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::OnceLock;

use postgres::{Client, Config, NoTls};
use scratch::Cluster;

/// The settings of a shared server.
#[derive(Debug, Clone, Copy)]
pub enum Profile {
    /// It could load pg_tally, but no test does so.
    Plain,
    /// pg_tally in every session.
    Sessions,
    /// pg_tally in all processes.
    Preloaded,
    /// The same as Preloaded, but nested statements are counted, and every plan is recorded.
    Everything,
}

impl Profile {
    const COUNT: usize = Profile::Everything as usize + 1;

    /// Starts the server if no test has done so. It runs until this program ends; then the cluster's watchdog
    /// removes it and its segment, because static values are never dropped.
    pub fn server(self) -> &'static Cluster {
        static SERVERS: [OnceLock<Cluster>; Profile::COUNT] =
            [const { OnceLock::new() }; Profile::COUNT];
        SERVERS[self as usize].get_or_init(|| {
            let settings: &[(&str, &str)] = match self {
                Profile::Plain => &[],
                Profile::Sessions => &[("session_preload_libraries", "pg_tally")],
                Profile::Preloaded => &[("shared_preload_libraries", "pg_tally")],
                Profile::Everything => &[
                    ("shared_preload_libraries", "pg_tally"),
                    ("pg_tally.statements", "all"),
                    ("pg_tally.plan_threshold", "0"),
                ],
            };
            super::start(super::plain().settings(settings.iter().copied()))
        })
    }

    /// A new database with the views, and a superuser of the same name.
    pub fn database(self) -> Database {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let server = self.server();
        let name = format!("test_{}", NUMBER.fetch_add(1, Ordering::Relaxed));
        let mut admin = server.connect().unwrap();
        admin.batch_execute(&format!("create role {name} superuser login")).unwrap();
        admin.batch_execute(&format!("create database {name} owner {name}")).unwrap();
        let database = Database { server, name };
        super::create_views_in(&mut database.connect());
        database
    }
}

/// A test's own database in a shared server. Dropping it drops the database.
pub struct Database {
    server: &'static Cluster,
    /// Its name and its owner's.
    pub name: String,
}

impl Deref for Database {
    type Target = Cluster;
    fn deref(&self) -> &Cluster {
        self.server
    }
}

impl Database {
    /// Connection settings for its owner.
    pub fn config(&self) -> Config {
        let mut config = self.server.config();
        config.user(&self.name).dbname(&self.name);
        config
    }

    /// A session of its owner.
    pub fn connect(&self) -> Client {
        self.config().connect(NoTls).unwrap()
    }

    /// Creates a role without rights of its own, which is a member of these roles; returns its name.
    pub fn role(&self, name: &str, of: &str) -> String {
        let role = format!("{}_{name}", self.name);
        let of = if of.is_empty() { String::new() } else { format!(" in role {of}") };
        self.connect().batch_execute(&format!("create role {role} login{of}")).unwrap();
        role
    }

    /// A libpq connection string to it, as its owner.
    pub fn connection_string(&self) -> String {
        let server = self.server.connection_string();
        server
            .replace("user=postgres", &format!("user={}", self.name))
            .replace("dbname=postgres", &format!("dbname={}", self.name))
    }

    /// The server's segment.
    pub fn segment(&self) -> PathBuf {
        super::segment(self.server)
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        // If the server has ended, the failure of another test says why.
        if let Ok(mut admin) = self.server.connect() {
            let _ = admin.batch_execute(&format!("drop database {} with (force)", self.name));
        }
    }
}
