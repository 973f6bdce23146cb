// SPDX-License-Identifier: PostgreSQL
//! Receivers of OTLP: a real OpenTelemetry Collector, and one that responds as a test wants.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{channel, Receiver};
use std::sync::{Arc, Mutex};

use serde_json::Value;

use super as support;

/// The Collector that script/otelcol builds, or the one in $OTELCOL; `None`, with a message, if there is none.
fn collector() -> Option<PathBuf> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../script/otelcol");
    let path = match std::env::var_os("OTELCOL") {
        Some(path) => PathBuf::from(path),
        None => {
            let output = Command::new(script).arg("--path").output().unwrap();
            PathBuf::from(String::from_utf8(output.stdout).unwrap().trim())
        }
    };
    let there = path.exists();
    if !there {
        eprintln!(
            "SKIPPED: no OpenTelemetry Collector at {}; script/otelcol builds it",
            path.display()
        );
    }
    there.then_some(path)
}

/// A Collector that receives by HTTPS and writes to files.
pub struct Collector {
    child: Child,
    port: u16,
    folder: tempfile::TempDir,
}

impl Collector {
    pub fn start() -> Option<Collector> {
        let program = collector()?;
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name).display().to_string();
        let made = Command::new("openssl")
            .args([
                "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=it",
            ])
            .args([
                "-addext",
                "subjectAltName=IP:127.0.0.1",
                "-addext",
                "basicConstraints=CA:FALSE",
            ])
            .args(["-keyout", &at("key.pem"), "-out", &at("certificate.pem")])
            .output()
            .unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        // It does not report which port it chose.
        let port = support::ports::free_port();
        let configuration = format!(
            "receivers:\n  otlp:\n    protocols:\n      http:\n        endpoint: 127.0.0.1:{port}\n        \
             tls: {{cert_file: {}, key_file: {}}}\nexporters:\n  file/metrics: {{path: {}}}\n  \
             file/logs: {{path: {}}}\n  file/traces: {{path: {}}}\nservice:\n  telemetry: {{metrics: {{level: none}}}}\n  pipelines:\n    \
             metrics: {{receivers: [otlp], exporters: [file/metrics]}}\n    \
             logs: {{receivers: [otlp], exporters: [file/logs]}}\n    \
             traces: {{receivers: [otlp], exporters: [file/traces]}}\n",
            at("certificate.pem"),
            at("key.pem"),
            at("metrics.json"),
            at("logs.json"),
            at("traces.json"),
        );
        std::fs::write(folder.path().join("config.yaml"), configuration).unwrap();
        let log = std::fs::File::create(folder.path().join("log")).unwrap();
        let child = Command::new(program)
            .args(["--config", &format!("file:{}", at("config.yaml"))])
            .stdin(Stdio::null())
            .stderr(log)
            .spawn()
            .unwrap();
        let collector = Collector { child, port, folder };
        support::eventually("the Collector listens", || {
            TcpStream::connect(("127.0.0.1", collector.port)).is_ok()
        });
        Some(collector)
    }

    pub fn url(&self) -> String {
        format!("https://127.0.0.1:{}", self.port)
    }

    pub fn certificate(&self) -> PathBuf {
        self.folder.path().join("certificate.pem")
    }

    /// The requests that it has written to a file, oldest first; an incomplete line is left out.
    fn requests(&self, file: &str) -> Vec<Value> {
        let text = std::fs::read_to_string(self.folder.path().join(file)).unwrap_or_default();
        let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
        whole.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// All readings of the metrics.
    pub fn readings(&self) -> Vec<Value> {
        self.requests("metrics.json")
    }

    /// All log records.
    pub fn records(&self) -> Vec<Value> {
        let requests = self.requests("logs.json");
        requests
            .iter()
            .flat_map(|request| list(request, "resourceLogs", "scopeLogs", "logRecords"))
            .collect()
    }

    /// All spans.
    pub fn spans(&self) -> Vec<Value> {
        spans(&self.requests("traces.json"))
    }

    /// Ends it, so that everything it has received is in its files.
    pub fn stop(&mut self) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Collector {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The only resource's only scope's items.
fn list(request: &Value, resources: &str, scopes: &str, items: &str) -> Vec<Value> {
    let of_resource = request[resources].as_array().unwrap();
    assert_eq!(of_resource.len(), 1);
    of_resource[0][scopes][0][items].as_array().unwrap().clone()
}

/// The spans of requests.
pub fn spans(requests: &[Value]) -> Vec<Value> {
    requests
        .iter()
        .flat_map(|request| list(request, "resourceSpans", "scopeSpans", "spans"))
        .collect()
}

/// An attribute's value as text.
pub fn attribute(of: &Value, key: &str) -> Option<String> {
    let found = of["attributes"].as_array()?.iter().find(|attribute| attribute["key"] == key)?;
    let value = found["value"].as_object()?.values().next()?;
    Some(value.as_str().map_or_else(|| value.to_string(), str::to_string))
}

/// The resource of a reading.
pub fn resource(reading: &Value) -> Value {
    reading["resourceMetrics"][0]["resource"].clone()
}

/// A metric's data points, and the type of its data.
pub fn points(reading: &Value, name: &str) -> Vec<(String, Value)> {
    let metrics = list(reading, "resourceMetrics", "scopeMetrics", "metrics");
    let mut found = Vec::new();
    for metric in metrics.iter().filter(|metric| metric["name"] == name) {
        for kind in ["sum", "gauge", "histogram", "exponentialHistogram"] {
            for point in metric[kind]["dataPoints"].as_array().into_iter().flatten() {
                found.push((kind.to_string(), point.clone()));
            }
        }
    }
    found
}

/// The data point with this attribute.
pub fn point(reading: &Value, name: &str, key: &str, value: &str) -> Option<Value> {
    let mut found = points(reading, name).into_iter().map(|(_, point)| point);
    found.find(|point| attribute(point, key).as_deref() == Some(value))
}

/// A number, which JSON has as text if it is a 64-bit integer.
pub fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| value.as_str().map_or(0.0, |text| text.parse().unwrap()))
}

/// A request that a [`Scripted`] receiver received.
#[derive(Debug, Clone)]
pub struct Got {
    /// Request line and headers, in lower case.
    pub head: String,
    pub body: Vec<u8>,
}

/// A receiver that responds to the first requests for a path as the test wants, and to later ones with 200.
pub struct Scripted {
    address: String,
    got: Receiver<Got>,
}

impl Scripted {
    /// For `path`, each response is the end of a status line and headers.
    pub fn start(path: &'static str, answers: &[&str]) -> Scripted {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let mut answers: Vec<String> = answers.iter().map(|answer| answer.to_string()).collect();
        answers.reverse();
        let answers = Arc::new(Mutex::new(answers));
        let (sender, got) = channel();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (mut stream, sender, answers) =
                    (stream.unwrap(), sender.clone(), Arc::clone(&answers));
                std::thread::spawn(move || {
                    while let Some(request) = read(&mut stream) {
                        let ours = request.head.contains(path);
                        let next = ours.then(|| answers.lock().unwrap().pop()).flatten();
                        let answer = next.unwrap_or_else(|| "200 OK".to_string());
                        let whole = format!("HTTP/1.1 {answer}\r\nContent-Length: 0\r\n\r\n");
                        if ours && sender.send(request).is_err() {
                            return;
                        }
                        if stream.write_all(whole.as_bytes()).is_err() {
                            return;
                        }
                    }
                });
            }
        });
        Scripted { address, got }
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The next request for its path.
    pub fn next(&self) -> Got {
        self.got.recv_timeout(std::time::Duration::from_secs(120)).expect("a request")
    }
}

fn read(stream: &mut TcpStream) -> Option<Got> {
    let mut bytes = Vec::new();
    let mut part = [0; 65536];
    loop {
        if let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&bytes[..end]).to_lowercase();
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
            let length: usize = length.map_or(0, |length| length.parse().unwrap());
            if bytes.len() >= end + 4 + length {
                return Some(Got { head, body: bytes[end + 4..end + 4 + length].to_vec() });
            }
        }
        match stream.read(&mut part) {
            Ok(0) | Err(_) => return None,
            Ok(count) => bytes.extend_from_slice(&part[..count]),
        }
    }
}
