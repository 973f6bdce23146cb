// SPDX-License-Identifier: PostgreSQL
//! A server with pg_tally installed that listens on an address of its own, with TLS and scram.

use std::path::PathBuf;
use std::process::Command;

use scratch::Cluster;

use super::installation::Installation;

pub const PASSWORD: &str = "it's \\ a secret";

pub struct Reachable {
    pub cluster: Cluster,
    /// One of the loopback addresses; nobody else listens there.
    pub address: String,
    /// The server's certificate, which signs itself.
    pub certificate: PathBuf,
}

impl Reachable {
    /// Settings are added to postgresql.conf. Database postgres has the extension.
    pub fn start(settings: &[(&str, &str)]) -> Reachable {
        let installation = Installation::shared();
        let random = rand::random::<[u8; 3]>().map(|byte| byte.clamp(1, 254));
        let address = format!("127.{}.{}.{}", random[0], random[1], random[2]);
        let mut cluster = Cluster::builder()
            .directory(super::memory())
            .binaries(installation.binaries())
            .setting("shared_preload_libraries", "pg_tally")
            .setting("pg_tally.max_slots", "64")
            .setting("listen_addresses", &address)
            .setting("ssl", "on")
            .setting("log_connections", "on")
            .setting("log_line_prefix", "")
            .settings(settings.iter().copied())
            .create()
            .unwrap();
        cluster.also_remove(&super::segment(&cluster));
        let data = cluster.data_dir().to_path_buf();
        let (key, certificate) = (data.join("server.key"), data.join("server.crt"));
        let made = Command::new("openssl")
            .args([
                "req",
                "-x509",
                "-newkey",
                "ec",
                "-pkeyopt",
                "ec_paramgen_curve:prime256v1",
                "-nodes",
                "-days",
                "2",
                "-subj",
                "/CN=it",
            ])
            .args(["-addext", &format!("subjectAltName=IP:{address}"), "-keyout"])
            .arg(&key)
            .arg("-out")
            .arg(&certificate)
            .output()
            .unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        for file in [&key, &certificate] {
            cluster.os_user().chown(file).unwrap();
        }
        let hba = "local all all trust\nhostssl all all 127.0.0.0/8 scram-sha-256\n";
        std::fs::write(data.join("pg_hba.conf"), hba).unwrap();
        cluster.start().unwrap();
        let quoted = PASSWORD.replace('\'', "''");
        cluster
            .psql(&format!(
                "create extension pg_tally; alter role postgres password '{quoted}'; \
                 create role watcher login password '{quoted}' in role pg_read_all_stats; \
                 create role poor login password '{quoted}'"
            ))
            .unwrap();
        Reachable { cluster, address, certificate }
    }

    /// A connection string without its password, over TLS, checked against the certificate.
    pub fn string(&self, role: &str) -> String {
        format!(
            "host={} user={role} dbname=postgres sslmode=verify-full sslrootcert={}",
            self.address,
            self.certificate.display()
        )
    }

    /// The same with it.
    pub fn full_string(&self, role: &str) -> String {
        let escaped = PASSWORD.replace('\\', "\\\\").replace('\'', "\\'");
        format!("{} password='{escaped}'", self.string(role))
    }
}
