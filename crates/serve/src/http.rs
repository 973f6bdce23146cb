// SPDX-License-Identifier: PostgreSQL
//! HTTP: connections, their limits, and responses.
//!
//! One thread drives all connections. Time and size of a request's head and the life of a connection are limited;
//! clients reconnect.

use std::convert::Infallible;
use std::future::Future;
use std::sync::mpsc::Sender;
use std::sync::Arc;
use std::time::Duration;

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{self, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{HeaderMap, Method, Request, Response, StatusCode, Uri};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::signal::unix::{signal, SignalKind};
use tokio::sync::{oneshot, watch};
use tokio::time::timeout;

use super::gate::{self, Gate, GateVerdict};
use super::listen::Listener;
use super::lobby::{self, Guest, Lobby};
use super::metrics::Form;
use super::page::{LivePage, FIGURES, PARTS};
use super::request::{self, HttpReply, Refusal, Resource};
use super::tls::Tls;
use super::tracing::Tracing;
use error::Error;

/// Time limit for the head of a request, and for the next request to start.
const HEAD: Duration = Duration::from_secs(10);
/// Maximum size of the head, bytes.
const HEAD_BYTES: usize = 16 * 1024;
/// Maximum life of a connection, so that a client that does not read does not block others.
const LIFE: Duration = Duration::from_secs(60);
/// Time limit for closing a connection cleanly.
const FAREWELL: Duration = Duration::from_secs(3);
/// Time limit for a response.
const PATIENCE: Duration = Duration::from_secs(30);

/// What responses need: the channel to the thread that has the figures, and the gate.
#[derive(Debug, Clone)]
struct Service {
    requests: Sender<request::Request>,
    gate: Arc<Gate>,
    tracing: Option<Arc<Tracing>>,
}

/// Serves until a signal arrives.
pub fn serve(
    listener: Listener,
    gate: Gate,
    tls: Option<Tls>,
    requests: Sender<request::Request>,
    tracing: Option<Tracing>,
) -> Result<(), Error> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let service = Service { requests, gate: Arc::new(gate), tracing: tracing.map(Arc::new) };
    let served = runtime.block_on(async {
        match listener {
            Listener::Tcp(listener) => {
                listener.set_nonblocking(true)?;
                let listener = tokio::net::TcpListener::from_std(listener)?;
                accept(service, tls, || async { listener.accept().await.map(|(stream, _)| stream) })
                    .await
            }
            Listener::Unix(listener, _file) => {
                listener.set_nonblocking(true)?;
                let listener = tokio::net::UnixListener::from_std(listener)?;
                accept(service, None, || async {
                    listener.accept().await.map(|(stream, _)| stream)
                })
                .await
            }
        }
    });
    // The remaining connections belong to clients that do not read.
    runtime.shutdown_background();
    Ok(served?)
}

/// Waits until a signal arrives.
pub fn until_signal() -> Result<(), Error> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let mut interrupt = signal(SignalKind::interrupt())?;
        let mut terminate = signal(SignalKind::terminate())?;
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
        Ok(())
    })
}

async fn accept<S, F>(
    service: Service,
    tls: Option<Tls>,
    mut next: impl FnMut() -> F,
) -> std::io::Result<()>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    F: Future<Output = std::io::Result<S>>,
{
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let lobby = Lobby::new();
    let (stop, stopped) = watch::channel(false);
    loop {
        let stream = tokio::select! {
            _ = interrupt.recv() => break,
            _ = terminate.recv() => break,
            stream = next() => stream,
        };
        let Ok(stream) = stream else {
            // Possibly out of file descriptors; try again later.
            tokio::time::sleep(Duration::from_millis(100)).await;
            continue;
        };
        let (guest, mut left) = lobby.enter();
        let (service, stopped) = (service.clone(), stopped.clone());
        match tls.as_ref().map(Tls::acceptor) {
            None => tokio::spawn(talk(stream, service, stopped, guest, left)),
            Some(acceptor) => tokio::spawn(async move {
                let encrypted = tokio::select! {
                    encrypted = timeout(lobby::PATIENCE, acceptor.accept(stream)) => encrypted,
                    _ = &mut left => return,
                };
                // It fails for a client without TLS, and for one that does not trust the certificate.
                if let Ok(Ok(stream)) = encrypted {
                    talk(stream, service, stopped, guest, left).await;
                }
            }),
        };
    }
    // Fails if there are no connections.
    let _ = stop.send(true);
    let _ = timeout(FAREWELL, lobby.emptied()).await;
    Ok(())
}

/// Serves one connection until its end.
async fn talk<S>(
    stream: S,
    service: Service,
    mut stopped: watch::Receiver<bool>,
    guest: Guest,
    left: oneshot::Receiver<()>,
) where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let guest = Arc::new(guest);
    let respond = service_fn(move |request| {
        let (service, guest) = (service.clone(), guest.clone());
        async move { Ok::<_, Infallible>(service.respond(request, &guest).await) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD)
        .max_buf_size(HEAD_BYTES)
        .max_headers(64)
        .serve_connection(TokioIo::new(stream), respond);
    let mut connection = std::pin::pin!(connection);
    // Errors of a client end only its own connection.
    tokio::select! {
        _ = connection.as_mut() => return,
        _ = Guest::sent_away(left, lobby::PATIENCE) => return,
        _ = tokio::time::sleep(LIFE) => {}
        _ = stopped.wait_for(|stopped| *stopped) => {}
    }
    connection.as_mut().graceful_shutdown();
    let _ = timeout(FAREWELL, connection).await;
}

impl Service {
    async fn respond(&self, request: Request<Incoming>, guest: &Guest) -> Response<Full<Bytes>> {
        let asked = gate::Request {
            method: request.method(),
            uri: request.uri(),
            version: request.version(),
            headers: request.headers(),
        };
        let mut response = match self.gate.verdict(asked) {
            GateVerdict::Pass(_) if !guest.admit() => {
                let mut response = text(StatusCode::SERVICE_UNAVAILABLE, "too many connections");
                set(&mut response, header::CONNECTION, "close");
                response
            }
            GateVerdict::Pass(user) => match (request.uri().path(), &self.tracing) {
                ("/trace", Some(tracing)) if request.method() == Method::GET => {
                    let query = request.uri().query().unwrap_or("");
                    // A trace has a cost for the traced session.
                    if let Some(user) = user.filter(|_| !query.is_empty()) {
                        view::escape::say(&format!("{user} traces a session: {query}"));
                    }
                    traced(tracing.page(query).await)
                }
                _ => self.answer(request.uri(), request.headers()).await,
            },
            GateVerdict::Welcome { location, cookie } => {
                let mut response = text(StatusCode::SEE_OTHER, "this way");
                set(&mut response, header::LOCATION, &location);
                set(&mut response, header::SET_COOKIE, &cookie);
                response
            }
            GateVerdict::Refuse(status, why) => {
                let mut response = text(status, why);
                match status {
                    StatusCode::METHOD_NOT_ALLOWED => {
                        set(&mut response, header::ALLOW, "GET, HEAD");
                    }
                    StatusCode::UNAUTHORIZED => {
                        set(&mut response, header::WWW_AUTHENTICATE, "Bearer");
                    }
                    _ => {}
                }
                // The rest of the request is not read.
                set(&mut response, header::CONNECTION, "close");
                response
            }
        };
        for (name, value) in SAFETY {
            response.headers_mut().entry(name).or_insert(HeaderValue::from_static(value));
        }
        response
    }

    async fn answer(&self, address: &Uri, headers: &HeaderMap) -> Response<Full<Bytes>> {
        let (what, kind) = match address.path().strip_prefix('/') {
            Some("") => (Resource::Page, "text/html; charset=utf-8"),
            Some(FIGURES) if address.query() == Some(PARTS) => {
                (Resource::ReportWithParts, "application/json")
            }
            Some(FIGURES) => (Resource::Report, "application/json"),
            Some("metrics") => {
                let values = headers.get_all(header::ACCEPT).iter();
                let accept: Vec<&str> = values.filter_map(|value| value.to_str().ok()).collect();
                let form = Form::wanted(&accept.join(","));
                (Resource::Metrics(form), form.content_type())
            }
            _ => {
                return text(
                    StatusCode::NOT_FOUND,
                    "not found; the paths are /, /report.json and /metrics",
                )
            }
        };
        let query = address.query().unwrap_or("").to_string();
        let answer = match self.ask(what, query).await {
            Ok(answer) => answer,
            Err((status, why)) => return text(status, &why),
        };
        let known = |tag: &str| {
            let values = headers.get_all(header::IF_NONE_MATCH).iter();
            values.filter_map(|value| value.to_str().ok()).any(|value| value.contains(tag))
        };
        let mut response = match &answer.tag {
            Some(tag) if known(tag) => {
                let mut response = Response::new(Full::default());
                *response.status_mut() = StatusCode::NOT_MODIFIED;
                response
            }
            _ => Response::new(Full::new(Bytes::from_owner(answer.body))),
        };
        set(&mut response, header::CONTENT_TYPE, kind);
        if let Some(tag) = &answer.tag {
            set(&mut response, header::ETAG, tag);
            set(&mut response, header::CACHE_CONTROL, "no-cache");
        }
        if let Some(policy) = &answer.policy {
            set(&mut response, header::CONTENT_SECURITY_POLICY, policy);
        }
        response
    }

    async fn ask(&self, what: Resource, query: String) -> Result<HttpReply, Refusal> {
        let (answer, answered) = oneshot::channel();
        let unavailable = |why: &str| (StatusCode::SERVICE_UNAVAILABLE, why.to_string());
        let silent = || unavailable("the server is no longer being read; restart `tally serve`");
        self.requests.send(request::Request { what, query, answer }).map_err(|_| silent())?;
        match timeout(PATIENCE, answered).await {
            Ok(answer) => answer.map_err(|_| silent())?,
            Err(_) => Err(unavailable("the response takes too long")),
        }
    }
}

/// The page of a trace contains its own policy.
fn traced(page: Result<String, Refusal>) -> Response<Full<Bytes>> {
    match page {
        Ok(page) => {
            let policy = LivePage::policy_of(&page);
            let mut response = Response::new(Full::new(Bytes::from(page)));
            set(&mut response, header::CONTENT_TYPE, "text/html; charset=utf-8");
            set(&mut response, header::CONTENT_SECURITY_POLICY, &policy);
            response
        }
        Err((status, why)) => text(status, &why),
    }
}

/// Default headers of every response.
const SAFETY: [(header::HeaderName, &str); 6] = [
    (header::CONTENT_SECURITY_POLICY, "default-src 'none'; frame-ancestors 'none'"),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::X_FRAME_OPTIONS, "DENY"),
    (header::REFERRER_POLICY, "no-referrer"),
    (header::CACHE_CONTROL, "no-store"),
    (header::HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
];

fn text(status: StatusCode, words: &str) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(format!("{words}\n"))));
    *response.status_mut() = status;
    set(&mut response, header::CONTENT_TYPE, "text/plain; charset=utf-8");
    response
}

/// Sets a header; a value that does not fit into a header is left out.
fn set(response: &mut Response<Full<Bytes>>, name: header::HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        response.headers_mut().insert(name, value);
    }
}
