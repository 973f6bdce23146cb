// SPDX-License-Identifier: PostgreSQL
//! An object storage server: a separate program that serves the protocol of one cloud.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// The server, which is stopped when this value is dropped.
pub struct Server {
    pub child: Child,
    pub port: u16,
}

/// moto's S3 server, which stands in for Amazon's (the same requests, including conditional writes), with an empty
/// bucket "bucket". It accepts any credentials.
pub fn s3(python: &Path) -> Server {
    let server = Server::start(|port| {
        let mut command = Command::new(python);
        command.args(["-m", "moto.server", "-H", "127.0.0.1", "-p", &port.to_string()]);
        command
    });
    server.request("PUT /bucket HTTP/1.1", "", "");
    server
}

impl Server {
    /// Starts the command for a free port, and waits until the server accepts connections. If another process has taken
    /// the port meanwhile, the server ends, and another port is tried.
    pub fn start(command: impl Fn(u16) -> Command) -> Server {
        let begun = Instant::now();
        loop {
            let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
            let mut command = command(port);
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
            let mut server = Server { child: command.spawn().unwrap(), port };
            while server.child.try_wait().unwrap().is_none() {
                if TcpStream::connect(("127.0.0.1", port)).is_ok() {
                    return server;
                }
                assert!(begun.elapsed() < Duration::from_secs(120), "{command:?} does not answer");
                std::thread::sleep(Duration::from_millis(20));
            }
            assert!(begun.elapsed() < Duration::from_secs(120), "{command:?} ends");
        }
    }

    /// Sends a request ("PUT /x HTTP/1.1", header lines, a body), which must succeed.
    pub fn request(&self, line: &str, head: &str, body: &str) {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        let length = body.len();
        let text = format!(
            "{line}\r\nHost: 127.0.0.1:{}\r\n{head}Content-Length: {length}\r\nConnection: close\r\n\r\n{body}",
            self.port
        );
        stream.write_all(text.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 20"), "{line}: {answer}");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
