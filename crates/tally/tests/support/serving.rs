// SPDX-License-Identifier: PostgreSQL
//! `tally serve` as a child process, and a Prometheus that scrapes it.

use std::io::{BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use scratch::Cluster;

use super as support;

/// A server in which only clients commit.
pub fn quiet() -> Cluster {
    // Commits wait for their flush.
    let quiet = support::flushing().setting("shared_preload_libraries", "pg_tally");
    support::start(quiet.setting("autovacuum", "off"))
}

/// Runs this number of transactions in each client; returns pgbench's count.
pub fn load(cluster: &Cluster, clients: u32, transactions: u64) -> u64 {
    let load = cluster.pgbench().clients(clients).transactions(transactions).arg("-n");
    let transactions = load.run().unwrap().transactions;
    // Served figures may be a tenth of a second old.
    std::thread::sleep(Duration::from_millis(200));
    transactions
}

/// A running `tally serve`.
pub struct Serving {
    child: Child,
    page: String,
    address: String,
}

impl Serving {
    /// Listens on a free port, without a token unless the arguments name one.
    pub fn start(cluster: &Cluster, arguments: &[&str]) -> Serving {
        let open = if arguments.contains(&"--token-file") { &[][..] } else { &["--no-token"] };
        Self::at(cluster, "127.0.0.1:0", &[open, arguments].concat())
    }

    /// Without options, so with a token.
    pub fn with_token(cluster: &Cluster) -> Serving {
        Self::at(cluster, "127.0.0.1:0", &[])
    }

    pub fn at(cluster: &Cluster, listen: &str, arguments: &[&str]) -> Serving {
        Self::by(Command::new(assert_cmd::cargo::cargo_bin("tally")), cluster, listen, arguments)
    }

    /// It queries the server as this user, even if the tests run as root.
    pub fn as_user(cluster: &Cluster, user: &str) -> Serving {
        let mut command = Command::new(assert_cmd::cargo::cargo_bin("tally"));
        command.env("PGUSER", user);
        Self::by(command, cluster, "127.0.0.1:0", &["--no-token"])
    }

    /// With variables of the environment and without an address; its messages go to `messages`.
    pub fn sending(
        target: &str,
        arguments: &[&str],
        environment: &[(&str, &str)],
        messages: &Path,
    ) -> Serving {
        let mut command = Command::new(assert_cmd::cargo::cargo_bin("tally"));
        command.envs(environment.iter().copied()).stderr(std::fs::File::create(messages).unwrap());
        Self::start_command(command, target, "none", arguments)
    }

    fn by(command: Command, cluster: &Cluster, listen: &str, arguments: &[&str]) -> Serving {
        Self::start_command(command, cluster.data_dir().to_str().unwrap(), listen, arguments)
    }

    /// For a target, which may be a connection string.
    pub fn start_command(
        mut command: Command,
        target: &str,
        listen: &str,
        arguments: &[&str],
    ) -> Serving {
        command.args(["serve", target, "--json", "--listen", listen]).args(arguments);
        Self::started(command)
    }

    /// For a fleet, with the results of an engine.
    pub fn of_fleet(engine: &Path, root: &Path, arguments: &[&str]) -> Serving {
        let mut command = Command::new(assert_cmd::cargo::cargo_bin("tally"));
        command.args(["serve", "--fleet", "--json", "--listen", "127.0.0.1:0", "--no-token"]);
        command.arg("--engine").arg(engine).arg("--root").arg(root).args(arguments);
        Self::started(command)
    }

    fn started(mut command: Command) -> Serving {
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let line = support::line_of(&mut BufReader::new(child.stdout.take().unwrap()));
        let started: serde_json::Value = serde_json::from_str(&line).unwrap();
        let page = started["page"].as_str().unwrap_or_default().to_string();
        let address = page.trim_start_matches("http://");
        let address = match page.starts_with("http://") {
            true => address.split('/').next().unwrap().to_string(),
            false => address.to_string(),
        };
        Serving { child, page, address }
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn address(&self) -> &str {
        &self.address
    }

    /// The address of the page, for a browser.
    pub fn page(&self) -> &str {
        &self.page
    }

    /// The token in the page's address.
    pub fn token(&self) -> &str {
        self.page.split_once("?token=").unwrap().1
    }

    /// The HTTP status of a request with these headers, and the whole response.
    pub fn status(&self, path: &str, headers: &str) -> (String, String) {
        let answer =
            self.raw(&format!("GET {path} HTTP/1.1\r\n{headers}\r\nConnection: close\r\n\r\n"));
        (answer.split(' ').nth(1).unwrap_or_default().to_string(), answer)
    }

    pub fn connect(&self) -> TcpStream {
        TcpStream::connect(&self.address).unwrap()
    }

    /// The response to these bytes.
    pub fn raw(&self, request: &str) -> String {
        let mut stream = self.connect();
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = Vec::new();
        // The server may reset the connection after its response.
        let _ = stream.read_to_end(&mut answer);
        String::from_utf8_lossy(&answer).into_owned()
    }

    /// The body of a path; None unless the status is 200.
    pub fn get(&self, path: &str) -> Option<String> {
        let token = self.page.split_once("?token=").map(|(_, token)| token);
        let bearer =
            token.map_or(String::new(), |token| format!("Authorization: Bearer {token}\r\n"));
        let answer = self.raw(&format!(
            "GET {path} HTTP/1.1\r\nHost: localhost\r\n{bearer}Connection: close\r\n\r\n"
        ));
        let (head, body) = answer.split_once("\r\n\r\n").unwrap_or_else(|| panic!("{answer}"));
        head.starts_with("HTTP/1.1 200").then(|| body.to_string())
    }

    pub fn metrics(&self) -> String {
        self.get("/metrics").unwrap()
    }

    pub fn report(&self) -> Option<serde_json::Value> {
        Some(serde_json::from_str(&self.get("/report.json")?).unwrap())
    }

    /// Ends it with SIGTERM; it must exit with 0.
    pub fn stop(mut self) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
        assert!(self.child.wait().unwrap().success());
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The value of a sample's line.
pub fn value(line: &str) -> f64 {
    line.rsplit_once(' ').unwrap().1.parse().unwrap()
}

/// The value of the sample with this name and these labels.
pub fn find(metrics: &str, name: &str) -> Option<f64> {
    let found = metrics
        .lines()
        .find(|line| line.strip_prefix(name).is_some_and(|rest| rest.starts_with(' ')));
    found.map(value)
}

pub fn field(metrics: &str, name: &str) -> f64 {
    find(metrics, name).unwrap_or(0.0)
}

/// Names and labels of counters, whose values must not decrease.
pub fn counters(metrics: &str) -> Vec<&str> {
    let lines = metrics.lines().filter(|line| !line.starts_with('#'));
    let names = lines.filter_map(|line| line.rsplit_once(' ')).map(|(name, _)| name);
    names
        .filter(|name| {
            let bare = name.split('{').next().unwrap();
            ["_total", "_count", "_sum", "_bucket"].iter().any(|end| bare.ends_with(end))
        })
        .collect()
}

/// A Prometheus that scrapes one address every second.
pub struct Prometheus {
    child: Child,
    port: u16,
    _folder: tempfile::TempDir,
}

impl Prometheus {
    pub fn start(serving: &Serving, options: &[&str]) -> Prometheus {
        let folder = tempfile::tempdir().unwrap();
        let configuration = format!(
            "global:\n  scrape_interval: 1s\nscrape_configs:\n  - job_name: pgtally\n    \
             static_configs:\n      - targets: ['{}']\n",
            serving.address()
        );
        let file = folder.path().join("prometheus.yml");
        std::fs::write(&file, configuration).unwrap();
        // It does not accept port 0.
        let port = support::ports::free_port();
        let child = Command::new("prometheus")
            .arg(format!("--config.file={}", file.display()))
            .arg(format!("--storage.tsdb.path={}", folder.path().join("data").display()))
            .arg(format!("--web.listen-address=127.0.0.1:{port}"))
            .args(options)
            .stderr(Stdio::null())
            .spawn()
            .expect("prometheus is not installed; make bootstrap does that");
        let prometheus = Prometheus { child, port, _folder: folder };
        support::eventually("Prometheus listens", || {
            TcpStream::connect(("127.0.0.1", prometheus.port)).is_ok()
        });
        prometheus
    }

    /// The value of an expression with at most one result.
    pub fn query(&self, expression: &str) -> Option<f64> {
        let letter = |byte: u8| match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_' => char::from(byte).to_string(),
            other => format!("%{other:02X}"),
        };
        let query: String = expression.bytes().map(letter).collect();
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).ok()?;
        let request =
            format!("GET /api/v1/query?query={query} HTTP/1.0\r\nHost: localhost\r\n\r\n");
        stream.write_all(request.as_bytes()).ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        let body = answer.split_once("\r\n\r\n")?.1;
        let json: serde_json::Value = serde_json::from_str(body).ok()?;
        let results = json["data"]["result"].as_array()?;
        assert!(results.len() <= 1, "{expression}: {body}");
        results.first()?["value"][1].as_str()?.parse().ok()
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
