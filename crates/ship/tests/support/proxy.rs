// SPDX-License-Identifier: PostgreSQL
//! A proxy in front of an object storage server, which fails as networks and servers do.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// The fault that the proxy adds to a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// No fault.
    None,
    /// The server answers with this status and does nothing.
    Status(u16),
    /// The request arrives, but the response is lost.
    AnswerLost,
    /// The connection ends in the middle of the request.
    Cut,
    /// The response is delayed.
    Slow,
}

/// Passes requests on, each with the next fault of a list, then without faults.
pub struct Proxy {
    pub port: u16,
    faults: Arc<Mutex<Vec<Fault>>>,
    requests: Arc<AtomicUsize>,
    stop: Arc<AtomicBool>,
}

impl Proxy {
    pub fn start(to: u16) -> Proxy {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let proxy = Proxy {
            port: listener.local_addr().unwrap().port(),
            faults: Arc::default(),
            requests: Arc::default(),
            stop: Arc::default(),
        };
        let (faults, requests) = (proxy.faults.clone(), proxy.requests.clone());
        let stop = proxy.stop.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                if stop.load(Ordering::Relaxed) {
                    return;
                }
                requests.fetch_add(1, Ordering::Relaxed);
                let fault = faults.lock().unwrap().pop().unwrap_or(Fault::None);
                // This fails if the client has ended.
                let _ = pass(stream.unwrap(), to, fault);
            }
        });
        proxy
    }

    /// The faults of the next requests.
    pub fn set(&self, faults: &[Fault]) {
        *self.faults.lock().unwrap() = faults.iter().rev().copied().collect();
    }

    pub fn requests(&self) -> usize {
        self.requests.load(Ordering::Relaxed)
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let _ = TcpStream::connect(("127.0.0.1", self.port));
    }
}

/// Passes on one request and its response on a connection.
fn pass(client: TcpStream, to: u16, fault: Fault) -> std::io::Result<()> {
    let mut reader = BufReader::new(client.try_clone()?);
    let mut head = String::new();
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let lower = line.to_ascii_lowercase();
        if let Some(value) = lower.strip_prefix("content-length:") {
            length = value.trim().parse().unwrap_or(0);
        }
        if line.trim().is_empty() {
            break;
        }
        if !lower.starts_with("connection:") {
            head.push_str(&line);
        }
    }
    head.push_str("Connection: close\r\n\r\n");
    if fault == Fault::Cut {
        return Ok(());
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    let mut client = client;
    if let Fault::Status(status) = fault {
        let text = "<Error><Code>Fault</Code></Error>";
        let length = text.len();
        return write!(
            client,
            "HTTP/1.1 {status} Fault\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{text}"
        );
    }
    let mut server = TcpStream::connect(("127.0.0.1", to))?;
    server.write_all(head.as_bytes())?;
    server.write_all(&body)?;
    let mut answer = Vec::new();
    server.read_to_end(&mut answer)?;
    match fault {
        Fault::AnswerLost => Ok(()),
        Fault::Slow => {
            std::thread::sleep(Duration::from_millis(300));
            client.write_all(&answer)
        }
        _ => client.write_all(&answer),
    }
}
