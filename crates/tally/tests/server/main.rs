// SPDX-License-Identifier: PostgreSQL
//! Tests with real servers: one program, so that initdb, linking and shared servers are paid for once. Each module is
//! a subject; its tests are named `subject::sentence`.

#[path = "../../../recording/tests/support/mod.rs"]
mod frames;
#[path = "../../../segment/tests/maker/mod.rs"]
mod maker;
#[path = "../../../ship/tests/support/server.rs"]
mod object_store;
#[path = "../support/mod.rs"]
mod support;
#[path = "../support/waiting.rs"]
mod waiting;

mod attack_limits;
mod attack_segment;
mod bad_input;
mod blocking;
mod blocking_graphs;
mod calls;
mod checkpoints;
mod client_pauses;
mod client_trace;
mod clock;
mod commits;
mod connect;
mod conservation;
mod cost;
mod crash;
mod dashboards;
mod detours;
mod diff;
mod diff_measured;
mod doctor;
mod doctor_planted;
mod enable;
mod events;
mod exactness;
mod extension;
mod file_bad_input;
mod file_exactness;
mod fleet;
mod fleet_incidents;
mod fleet_page;
mod fleet_server;
mod fleet_tables;
mod foreign;
mod function_exactness;
mod functions;
mod hard_days;
mod held;
mod hosts;
mod installed;
mod lazy_binding;
mod leaders;
mod level;
mod libpq;
mod lock_exactness;
mod lwlocks;
mod method_edges;
mod methods;
mod otlp;
mod pg_stat_io;
mod plan_history;
mod plans;
mod profile;
mod record;
mod recorded;
mod relation_names;
mod remote;
mod report;
mod serve;
mod serve_crowd;
mod session_history;
mod settings;
mod ship;
mod slow;
mod spanning;
mod statement_file;
mod statement_views;
mod statements_bad_input;
mod statements_command;
mod statements_conservation;
mod statements_witness;
mod status;
mod storage;
mod storage_views;
mod streaming;
mod streams;
mod stress;
mod study;
mod sync_exactness;
mod top;
mod top_blocking;
mod top_io;
mod top_refresh;
mod top_replay;
mod top_screen;
mod trace;
mod trace_otlp;
mod trace_withdrawn;
mod two_agents;
mod unseen;
mod unwinding;
mod upgrade;
mod views;
mod wal;
