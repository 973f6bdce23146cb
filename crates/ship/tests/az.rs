// SPDX-License-Identifier: PostgreSQL
//! Ships to a server with the protocol of Azure Blob Storage: Azurite, Microsoft's test server (`script/azurite`
//! installs it).

mod support;

use std::path::{Path, PathBuf};
use std::process::Command;
use support::{cloud, proxy::Proxy, server::Server};

/// The path of Azurite; `None`, with a message, if it is not installed.
fn azurite() -> Option<PathBuf> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../script/azurite");
    let output = Command::new(script).arg("--path").output().unwrap();
    let path = PathBuf::from(String::from_utf8(output.stdout).unwrap().trim());
    let there = path.exists();
    if !there {
        eprintln!("SKIPPED: no Azurite at {}; script/azurite installs it", path.display());
    }
    there.then_some(path)
}

/// This is a single test, because the environment belongs to the whole process.
#[test]
fn every_interval_arrives_once_in_azure() {
    let Some(program) = azurite() else { return };
    let server = Server::start(|port| {
        let mut command = Command::new(&program);
        command.args(["--inMemoryPersistence", "--skipApiVersionCheck", "--silent"]);
        command.args([
            "--disableTelemetry",
            "--blobHost",
            "127.0.0.1",
            "--blobPort",
            &port.to_string(),
        ]);
        command
    });
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/az/container.py");
    let made = Command::new("python3").args([script, &server.port.to_string()]).output().unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let proxy = Proxy::start(server.port);
    std::env::set_var("AZURE_STORAGE_USE_EMULATOR", "true");
    let at_port = |port: u16| {
        std::env::set_var("AZURITE_BLOB_STORAGE_URL", format!("http://127.0.0.1:{port}"));
    };
    at_port(proxy.port);
    cloud::every_interval_arrives_once("az", &proxy);
    at_port(cloud::free_port());
    cloud::unavailable("az://bucket/x");
}
