// SPDX-License-Identifier: PostgreSQL
//! Sends the requests of one queue, in order, by OTLP over HTTP.
//!
//! After a failure that the specification calls retryable (no answer, 429, 502, 503, 504), the request is sent again,
//! after the time that the receiver asks for or after a growing pause; after any other failure it is given up. Each
//! change is reported once.

use std::sync::Arc;
use std::time::Duration;

use error::Error;
use flate2::write::GzEncoder;
use flate2::Compression;
use jiff::fmt::rfc2822;
use rand::Rng;
use ureq::http::header::RETRY_AFTER;
use ureq::tls::{parse_pem, Certificate, ClientCert, PemItem, PrivateKey, RootCerts, TlsConfig};
use ureq::Agent;
use view::escape::{say, visible};

use super::queue::{Queue, QueuedRequest};
use super::settings::{read, Target};
use super::signal::Signal;

/// First pause before sending a request again, its growth, and its limit.
const PAUSE: Duration = Duration::from_secs(1);
const GROWTH: f64 = 1.5;
const LONGEST: Duration = Duration::from_secs(30);
/// Longest pause that a receiver may ask for.
const ASKED: Duration = Duration::from_secs(600);
/// Maximum size of an answer, bytes, and of its printed text, characters.
const ANSWER: u64 = 64 << 10;
const SHOWN: usize = 200;

/// The outcome of a request.
#[derive(Debug, PartialEq)]
enum SendOutcome {
    /// Accepted, except for this number of data points, records or spans.
    Accepted(u64, String),
    /// Send it again, after this time if the receiver asks for one.
    Later(Option<Duration>, String),
    /// Refused permanently.
    Refused(String),
}

/// Sends the requests of a queue.
#[derive(Debug)]
pub struct Sender {
    signal: Signal,
    target: Target,
    agent: Agent,
    queue: Arc<Queue>,
    /// The last report; `None` while everything works.
    reported: Option<String>,
}

impl Sender {
    /// A sender. Fails if a certificate cannot be used.
    pub fn new(signal: Signal, target: Target, queue: Arc<Queue>) -> Result<Sender, Error> {
        let config = Agent::config_builder()
            .http_status_as_error(false)
            // A redirect could send the credentials elsewhere.
            .max_redirects(0)
            .user_agent(concat!("pgtally/", env!("CARGO_PKG_VERSION")))
            .tls_config(tls(&target)?)
            .build();
        let agent = Agent::new_with_config(config);
        Ok(Sender { signal, target, agent, queue, reported: None })
    }

    /// Sends until the queue is closed.
    pub fn work(mut self) {
        if self.target.exposes_headers() {
            self.report(format!(
                "sending OTEL_EXPORTER_OTLP_HEADERS unencrypted to {}",
                self.target.shown()
            ));
            self.reported = None;
        }
        while let Some(taken) = self.queue.first() {
            let mut pause = PAUSE;
            loop {
                match self.send(&taken) {
                    SendOutcome::Accepted(rejected, why) => {
                        self.accepted(rejected, &why);
                        self.queue.settle(&taken, Some(rejected));
                        break;
                    }
                    SendOutcome::Refused(why) => {
                        self.report(format!(
                            "{} refused {}: {why}",
                            self.target.shown(),
                            self.signal.name()
                        ));
                        self.queue.settle(&taken, None);
                        break;
                    }
                    SendOutcome::Later(asked, why) => {
                        self.report(format!(
                            "{}: {why}; {} are kept for a retry",
                            self.target.shown(),
                            self.signal.name()
                        ));
                        let length = asked
                            .unwrap_or_else(|| pause.mul_f64(rand::rng().random_range(0.5..1.5)));
                        self.queue.pause(length);
                        pause = pause.mul_f64(GROWTH).min(LONGEST);
                        if !self.queue.holds(&taken) {
                            break;
                        }
                    }
                }
            }
        }
    }

    fn report(&mut self, what: String) {
        if self.reported.as_ref() != Some(&what) {
            say(&format!("otlp: {what}"));
            self.reported = Some(what);
        }
    }

    fn accepted(&mut self, rejected: u64, why: &str) {
        if rejected > 0 || !why.is_empty() {
            let of = match self.signal {
                Signal::Metrics => "data points",
                Signal::Logs => "records",
                Signal::Traces => "spans",
            };
            let what = format!("{} rejected {rejected} {of}: {}", self.target.shown(), shown(why));
            self.report(what);
        } else if self.reported.take().is_some() {
            let dropped = self.queue.fate().dropped;
            say(&format!(
                "otlp: {} accepts {} again; dropped so far: {dropped}",
                self.target.shown(),
                self.signal.name()
            ));
        }
    }

    fn send(&self, taken: &QueuedRequest) -> SendOutcome {
        let left = self.queue.left().unwrap_or(self.target.timeout);
        let mut request = self
            .agent
            .post(&self.target.url)
            .config()
            .timeout_global(Some(left.min(self.target.timeout).max(Duration::from_millis(1))))
            .build()
            .content_type("application/x-protobuf");
        for (name, value) in &self.target.headers {
            request = request.header(name, value);
        }
        let answer = if self.target.gzip {
            request.header("content-encoding", "gzip").send(&*compressed(&taken.body))
        } else {
            request.send(&*taken.body)
        };
        match answer {
            Ok(mut answer) => {
                let status = answer.status().as_u16();
                let after =
                    answer.headers().get(RETRY_AFTER).and_then(|header| header.to_str().ok());
                let after = after.and_then(|text| retry_after(text, jiff::Timestamp::now()));
                let body = answer.body_mut().with_config().limit(ANSWER).read_to_vec();
                outcome(self.signal, status, after, &body.unwrap_or_default())
            }
            Err(error) if is_permanent(&error) => SendOutcome::Refused(shown(&error.to_string())),
            Err(error) => SendOutcome::Later(None, shown(&error.to_string())),
        }
    }
}

fn outcome(signal: Signal, status: u16, after: Option<Duration>, body: &[u8]) -> SendOutcome {
    match status {
        200..=299 => {
            let (rejected, why) = signal.rejected(body).unwrap_or_default();
            SendOutcome::Accepted(rejected, why)
        }
        429 | 502 | 503 | 504 => SendOutcome::Later(after, format!("HTTP status {status}")),
        // The body may be a Status in protobuf, a text or a page; the HTTP status is enough.
        _ => SendOutcome::Refused(format!("HTTP status {status}")),
    }
}

/// Whether a later attempt would fail too.
fn is_permanent(error: &ureq::Error) -> bool {
    use ureq::Error;
    matches!(error, Error::BadUri(_) | Error::Http(_) | Error::Pem(_) | Error::InvalidProxyUrl)
}

/// Parses a Retry-After header: a number of seconds, or a date.
fn retry_after(text: &str, now: jiff::Timestamp) -> Option<Duration> {
    let text = text.trim();
    let seconds = match text.parse::<u64>() {
        Ok(seconds) => seconds,
        Err(_) => {
            let at = rfc2822::parse(text).ok()?.timestamp();
            u64::try_from(at.duration_since(now).as_secs()).unwrap_or(0)
        }
    };
    Some(Duration::from_secs(seconds).min(ASKED))
}

/// Makes an untrusted text printable.
fn shown(text: &str) -> String {
    visible(text.trim()).chars().take(SHOWN).collect()
}

fn compressed(body: &[u8]) -> Vec<u8> {
    use std::io::Write;
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    // Writing to memory cannot fail.
    let _ = encoder.write_all(body);
    encoder.finish().unwrap_or_default()
}

fn tls(target: &Target) -> Result<TlsConfig, Error> {
    let roots = match &target.certificate {
        None => RootCerts::PlatformVerifier,
        Some(path) => {
            let found = certificates(&read(path)?);
            if found.is_empty() {
                return Err(Error::Failed(format!(
                    "{} contains no certificate in PEM format",
                    path.display()
                )));
            }
            found.into()
        }
    };
    let client = match &target.client {
        None => None,
        Some((certificate, key)) => {
            let chain = certificates(&read(certificate)?);
            let bad = |path: &std::path::Path| {
                Error::Failed(format!(
                    "{} contains no certificate or key in PEM format",
                    path.display()
                ))
            };
            if chain.is_empty() {
                return Err(bad(certificate));
            }
            let key = PrivateKey::from_pem(&read(key)?).map_err(|_| bad(key))?;
            Some(ClientCert::new_with_certs(&chain, key))
        }
    };
    Ok(TlsConfig::builder().root_certs(roots).client_cert(client).build())
}

fn certificates(pem: &[u8]) -> Vec<Certificate<'static>> {
    let certificate = |item| match item {
        Ok(PemItem::Certificate(certificate)) => Some(certificate),
        _ => None,
    };
    parse_pem(pem).filter_map(certificate).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsPartialSuccess;
    use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceResponse;
    use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsPartialSuccess;
    use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceResponse;
    use opentelemetry_proto::tonic::collector::trace::v1::ExportTracePartialSuccess;
    use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceResponse;
    use prost::Message;

    #[test]
    fn only_what_the_specification_calls_retryable_is_sent_again() {
        for status in [429, 502, 503, 504] {
            let later = outcome(Signal::Logs, status, Some(PAUSE), b"busy");
            assert_eq!(later, SendOutcome::Later(Some(PAUSE), format!("HTTP status {status}")));
        }
        for status in [301, 400, 401, 404, 413, 500, 501] {
            assert!(
                matches!(outcome(Signal::Logs, status, None, b""), SendOutcome::Refused(_)),
                "{status}"
            );
        }
        assert_eq!(outcome(Signal::Logs, 200, None, b""), SendOutcome::Accepted(0, String::new()));
    }

    #[test]
    fn a_partial_success_is_read() {
        let part =
            ExportLogsPartialSuccess { rejected_log_records: 3, error_message: "too old".into() };
        let answer = ExportLogsServiceResponse { partial_success: Some(part) }.encode_to_vec();
        let accepted = SendOutcome::Accepted(3, "too old".into());
        assert_eq!(outcome(Signal::Logs, 200, None, &answer), accepted);
        let part =
            ExportMetricsPartialSuccess { rejected_data_points: 4, error_message: String::new() };
        let answer = ExportMetricsServiceResponse { partial_success: Some(part) }.encode_to_vec();
        assert_eq!(
            outcome(Signal::Metrics, 200, None, &answer),
            SendOutcome::Accepted(4, String::new())
        );
        let part = ExportTracePartialSuccess { rejected_spans: 5, error_message: String::new() };
        let answer = ExportTraceServiceResponse { partial_success: Some(part) }.encode_to_vec();
        assert_eq!(
            outcome(Signal::Traces, 200, None, &answer),
            SendOutcome::Accepted(5, String::new())
        );
        assert_eq!(shown(&format!(" a\u{1b}{} ", "b".repeat(999))).chars().count(), SHOWN);
    }

    #[test]
    fn a_receiver_asks_for_a_time_or_a_date_within_bounds() {
        let now: jiff::Timestamp = "2026-03-01T12:00:00Z".parse().unwrap();
        let seconds = |text| retry_after(text, now).map(|pause| pause.as_secs());
        assert_eq!(seconds("7"), Some(7));
        assert_eq!(seconds("99999999"), Some(600));
        assert_eq!(seconds("Sun, 01 Mar 2026 12:00:30 GMT"), Some(30));
        assert_eq!(seconds("Sun, 01 Mar 2026 11:00:00 GMT"), Some(0));
        assert_eq!(seconds("soon"), None);
    }
}
