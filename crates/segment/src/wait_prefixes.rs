// SPDX-License-Identifier: PostgreSQL
//! The class of a wait by the beginning of its name.
//!
//! Generated from format/classes.toml by `make generate`; do not edit.

use crate::layout::account_class as class;

/// Beginnings of names, and their classes as in a directory entry; the first that fits counts.
pub(crate) const WAIT_PREFIXES: [(&str, u8); 24] = [
    ("Call:commit_delay", class::OTHER),
    ("Call:epoll_wait", class::OTHER),
    ("Call:getaddrinfo", class::OTHER),
    ("Call:getnameinfo", class::OTHER),
    ("Call:ldap_", class::OTHER),
    ("Call:nanosleep", class::OTHER),
    ("Call:pam_", class::OTHER),
    ("Call:pclose", class::OTHER),
    ("Call:popen", class::OTHER),
    ("Call:select", class::OTHER),
    ("Call:sem_wait", class::OTHER),
    ("Call:system", class::OTHER),
    ("Call:", class::IO),
    ("Buffer:BufferCleanup", class::BUFFER_PIN),
    ("Buffer:", class::LWLOCK),
    ("IO:", class::IO),
    ("Lock:", class::LOCK),
    ("LWLock:", class::LWLOCK),
    ("Client:", class::CLIENT),
    ("IPC:", class::IPC),
    ("Timeout:", class::TIMEOUT),
    ("Activity:", class::ACTIVITY),
    ("BufferPin:", class::BUFFER_PIN),
    ("Extension:", class::EXTENSION),
];
