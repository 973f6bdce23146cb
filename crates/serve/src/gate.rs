// SPDX-License-Identifier: PostgreSQL
//! Decides which requests are accepted: only methods that change nothing, only host names of this machine, and
//! only with the token if one is required.

use std::sync::Arc;

use hyper::header::{HeaderMap, HeaderValue, AUTHORIZATION, CONTENT_LENGTH, COOKIE, HOST};
use hyper::{Method, StatusCode, Uri, Version};

use super::access::Access;

/// The conditions for requests.
#[derive(Debug, Clone)]
pub struct Gate {
    /// Require a host name of this machine. Otherwise any page in a local browser could read this server under
    /// its own host name, by making that name resolve to this machine (DNS rebinding).
    pub own_names_only: bool,
    /// The cookie that holds the token ([`cookie_name`]).
    pub cookie: String,
    /// Whether browsers send the cookie only over TLS.
    pub secure: bool,
    /// Who may read.
    pub access: Arc<Access>,
}

/// The decision about a request.
#[derive(Debug, PartialEq, Eq)]
pub enum GateVerdict {
    /// Accepted; the name of the user, if users have names.
    Pass(Option<Arc<str>>),
    /// Redirect to `location` and set the cookie.
    Welcome {
        /// The requested path without the token.
        location: String,
        /// Set-Cookie header with the token.
        cookie: String,
    },
    /// Refused, with status and reason.
    Refuse(StatusCode, &'static str),
}

/// The parts of a request that matter.
#[derive(Debug, Clone, Copy)]
pub struct Request<'r> {
    /// Method.
    pub method: &'r Method,
    /// URI.
    pub uri: &'r Uri,
    /// HTTP version.
    pub version: Version,
    /// Headers.
    pub headers: &'r HeaderMap<HeaderValue>,
}

impl Gate {
    /// Decides about a request.
    pub fn verdict(&self, request: Request<'_>) -> GateVerdict {
        let headers = request.headers;
        if !matches!(*request.method, Method::GET | Method::HEAD) {
            return GateVerdict::Refuse(
                StatusCode::METHOD_NOT_ALLOWED,
                "only GET and HEAD are allowed",
            );
        }
        let no_body = headers.get(CONTENT_LENGTH).is_none_or(|length| length == "0");
        if !no_body || headers.contains_key("transfer-encoding") {
            return GateVerdict::Refuse(
                StatusCode::PAYLOAD_TOO_LARGE,
                "requests must not have a body",
            );
        }
        let mut hosts = headers.get_all(HOST).iter();
        let (host, more) = (hosts.next().and_then(|host| host.to_str().ok()), hosts.next());
        if more.is_some() || (host.is_none() && request.version >= Version::HTTP_11) {
            return GateVerdict::Refuse(
                StatusCode::BAD_REQUEST,
                "exactly one Host header is required",
            );
        }
        let named = [host, request.uri.authority().map(|authority| authority.as_str())];
        if self.own_names_only && !named.iter().flatten().all(|name| is_own(name)) {
            return GateVerdict::Refuse(
                StatusCode::MISDIRECTED_REQUEST,
                "only the host names localhost, 127.0.0.1 and [::1] are served",
            );
        }
        match self.access.needs_token() {
            false => GateVerdict::Pass(None),
            true => self.identify(request),
        }
    }

    fn identify(&self, request: Request<'_>) -> GateVerdict {
        let Gate { access, cookie, .. } = self;
        let headers = request.headers;
        let bearer = headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok());
        let bearer = bearer.and_then(|value| value.split_once(' '));
        let bearer = bearer.filter(|(kind, _)| kind.eq_ignore_ascii_case("bearer"));
        if let Some(user) = bearer.and_then(|(_, given)| access.user(given.trim())) {
            return GateVerdict::Pass(user.name);
        }
        let cookies = headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok());
        let pairs =
            cookies.flat_map(|line| line.split(';')).filter_map(|pair| pair.split_once('='));
        let mut given = pairs.filter(|(name, _)| name.trim() == cookie);
        if let Some(user) = given.find_map(|(_, given)| access.user(given.trim())) {
            return GateVerdict::Pass(user.name);
        }
        let query = request.uri.query().unwrap_or("");
        let given = query.split('&').find_map(|pair| pair.strip_prefix("token="));
        if let Some(user) = given.and_then(|given| access.user(given)) {
            // Remove the token from the URL, so that it does not stay in the browser's history. A path that starts
            // with two slashes would lead to another host.
            let path = request.uri.path().trim_start_matches('/');
            let secure = if self.secure { "; Secure" } else { "" };
            return GateVerdict::Welcome {
                location: format!("/{path}"),
                cookie: format!(
                    "{cookie}={}; Path=/; HttpOnly; SameSite=Strict{secure}",
                    user.token
                ),
            };
        }
        GateVerdict::Refuse(
            StatusCode::UNAUTHORIZED,
            "a token is required: in the URL once, as ?token=..., or in the header Authorization: Bearer ...",
        )
    }
}

/// Whether a name, with or without a port, is one of this machine's own.
fn is_own(host: &str) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    };
    ["localhost", "127.0.0.1", "[::1]"].iter().any(|own| name.eq_ignore_ascii_case(own))
}

/// The name of the cookie contains the port, because browsers do not separate cookies by port. Therefore one
/// `tally serve` does not replace the cookie of another.
pub fn cookie_name(port: u16) -> String {
    format!("pgtally_token_{port}")
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOKEN: &str = "0123456789abcdef";

    fn ask(
        gate: &Gate,
        method: Method,
        uri: &str,
        headers: &[(&'static str, &str)],
    ) -> GateVerdict {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(*name, value.parse().unwrap());
        }
        let uri: Uri = uri.parse().unwrap();
        gate.verdict(Request {
            method: &method,
            uri: &uri,
            version: Version::HTTP_11,
            headers: &map,
        })
    }

    fn status(verdict: &GateVerdict) -> u16 {
        match verdict {
            GateVerdict::Pass(_) => 200,
            GateVerdict::Welcome { .. } => 303,
            GateVerdict::Refuse(status, _) => status.as_u16(),
        }
    }

    #[test]
    fn only_read_requests_under_a_name_of_this_machine_are_accepted() {
        let gate = Gate {
            own_names_only: true,
            cookie: cookie_name(1),
            secure: false,
            access: Arc::new(Access::Anybody),
        };
        let get = |host| status(&ask(&gate, Method::GET, "/", &[("host", host)]));
        for host in ["localhost", "LOCALHOST:9188", "127.0.0.1:1", "[::1]", "[::1]:9188"] {
            assert_eq!(get(host), 200, "{host}");
        }
        for host in
            ["evil.example", "localhost.evil.example", "127.0.0.1.evil.example:9188", "", "[::1]x"]
        {
            assert_eq!(get(host), 421, "{host}");
        }
        let host = ("host", "localhost");
        for method in [Method::POST, Method::PUT, Method::DELETE, Method::OPTIONS, Method::TRACE] {
            assert_eq!(status(&ask(&gate, method, "/", &[host])), 405);
        }
        let get = |uri, headers: &[_]| status(&ask(&gate, Method::GET, uri, headers));
        assert_eq!(get("/", &[]), 400);
        assert_eq!(get("/", &[host, host]), 400);
        assert_eq!(get("/", &[host, ("content-length", "7")]), 413);
        assert_eq!(get("/", &[host, ("transfer-encoding", "chunked")]), 413);
        assert_eq!(get("http://evil.example/", &[host]), 421);
    }

    #[test]
    fn a_token_is_accepted_in_the_header_the_cookie_or_once_in_the_address() {
        let cookie = cookie_name(9188);
        let access = Arc::new(Access::Printed(TOKEN.to_string()));
        let mut gate = Gate { own_names_only: false, cookie, secure: false, access };
        let get_from = |gate: &Gate, uri: &str, header: (&'static str, &str)| {
            ask(gate, Method::GET, uri, &[("host", "db1"), header])
        };
        let get = |uri: &str, header| get_from(&gate, uri, header);
        let bearer = format!("bearer {TOKEN}");
        let cookie = format!("a=b; pgtally_token_9188={TOKEN}");
        assert_eq!(get("/", ("authorization", &bearer)), GateVerdict::Pass(None));
        assert_eq!(get("/", ("cookie", &cookie)), GateVerdict::Pass(None));
        let welcome = get(&format!("//evil.example/x?a=b&token={TOKEN}"), ("a", "b"));
        let GateVerdict::Welcome { location, cookie } = welcome else { panic!("{welcome:?}") };
        assert_eq!(location, "/evil.example/x");
        assert!(cookie.ends_with("HttpOnly; SameSite=Strict"));
        for header in [
            ("a", "b"),
            ("authorization", "Bearer"),
            ("authorization", "Bearer 0123456789abcdeX"),
            ("authorization", "Basic 0123456789abcdef"),
            ("cookie", "pgtally_token_9188=0123456789abcdef0"),
            ("cookie", "pgtally_token_9189=0123456789abcdef"),
            ("cookie", "pgtally_token_9188="),
            ("cookie", "xpgtally_token_9188=0123456789abcdef"),
        ] {
            assert_eq!(status(&get("/?token=0123", header)), 401, "{header:?}");
        }
        gate.secure = true;
        let welcome = get_from(&gate, &format!("/?token={TOKEN}"), ("a", "b"));
        let GateVerdict::Welcome { cookie, .. } = welcome else { panic!("{welcome:?}") };
        assert!(cookie.ends_with("; Secure"), "{cookie}");
    }
}
