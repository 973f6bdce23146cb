// SPDX-License-Identifier: PostgreSQL
//! The receiver and the credentials: `--otlp`, and the environment variables of OpenTelemetry's exporter specification.
//! Credentials are never printed, and no option takes them, because all users can see a command's arguments.

use std::path::{Path, PathBuf};
use std::time::Duration;

use error::Error;
use hyper::header::{HeaderName, HeaderValue};
use hyper::Uri;

use super::signal::Signal;

/// The specification's default receiver.
const DEFAULT: &str = "http://localhost:4318";
/// The receiver of one signal.
pub struct Target {
    /// The whole URL.
    pub url: Uri,
    /// Headers, possibly with credentials.
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// File of certificates to trust instead of the system's.
    pub certificate: Option<PathBuf>,
    /// Files of our own certificate and its key.
    pub client: Option<(PathBuf, PathBuf)>,
    /// How long a request may take.
    pub timeout: Duration,
    /// Whether to compress requests.
    pub gzip: bool,
}

impl std::fmt::Debug for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Target").field("url", &self.shown()).finish_non_exhaustive()
    }
}

impl Target {
    /// The URL without its query, which may have credentials.
    pub fn shown(&self) -> String {
        let part = |part: Option<&str>| part.unwrap_or_default().to_string();
        let authority = part(self.url.authority().map(|authority| authority.as_str()));
        format!("{}://{authority}{}", part(self.url.scheme_str()), self.url.path())
    }

    /// Whether credentials would be sent unencrypted to another machine.
    pub fn exposes_headers(&self) -> bool {
        let host = self.url.host().unwrap_or_default().trim_matches(['[', ']']);
        let address = host.parse::<std::net::IpAddr>();
        let local = host == "localhost" || address.is_ok_and(|address| address.is_loopback());
        self.url.scheme_str() == Some("http") && !local && !self.headers.is_empty()
    }
}

/// The environment variables; those of one signal take precedence.
struct Variables<'v> {
    get: &'v dyn Fn(&str) -> Option<String>,
    signal: Signal,
}

impl Variables<'_> {
    fn find(&self, name: &str) -> Option<(String, String)> {
        let upper = self.signal.name().to_uppercase();
        [format!("OTEL_EXPORTER_OTLP_{upper}_{name}"), format!("OTEL_EXPORTER_OTLP_{name}")]
            .into_iter()
            .find_map(|name| {
                Some((name.clone(), (self.get)(&name).filter(|value| !value.is_empty())?))
            })
    }

    fn path(&self, name: &str) -> Option<PathBuf> {
        self.find(name).map(|(_, path)| path.into())
    }
}

/// The user's attributes of the resource.
pub fn resource(get: &dyn Fn(&str) -> Option<String>) -> Result<Vec<(String, String)>, Error> {
    let mut resource = match get("OTEL_RESOURCE_ATTRIBUTES") {
        Some(list) => pairs("OTEL_RESOURCE_ATTRIBUTES", &list)?,
        None => Vec::new(),
    };
    if let Some(name) = get("OTEL_SERVICE_NAME").filter(|name| !name.is_empty()) {
        resource.push(("service.name".to_string(), name));
    }
    Ok(resource)
}

fn usage(text: String) -> Error {
    Error::Usage(text)
}

/// The receiver of a signal: from `--otlp`, with or without URL, and the environment, which `get` reads.
pub fn target(
    url: Option<&str>,
    signal: Signal,
    get: &dyn Fn(&str) -> Option<String>,
) -> Result<Target, Error> {
    let variables = &Variables { get, signal };
    let path = variables.signal.path();
    let own = format!("OTEL_EXPORTER_OTLP_{}_ENDPOINT", variables.signal.name().to_uppercase());
    let url = match (url, variables.find("ENDPOINT")) {
        (Some(url), _) => below(&parse("--otlp", url)?, path),
        // A URL for one signal is used unchanged.
        (None, Some((name, url))) if name == own => parse(&name, &url)?,
        (None, Some((name, url))) => below(&parse(&name, &url)?, path),
        (None, None) => below(&parse("--otlp", DEFAULT)?, path),
    };
    if let Some((name, protocol)) = variables.find("PROTOCOL") {
        if protocol != "http/protobuf" {
            return Err(usage(format!(
                "{name} is {protocol}, but tally supports only http/protobuf; use the receiver's HTTP port, \
                 usually 4318"
            )));
        }
    }
    let gzip = match variables.find("COMPRESSION") {
        None => false,
        Some((name, text)) => match text.as_str() {
            "gzip" => true,
            "none" => false,
            _ => return Err(usage(format!("{name} must be gzip or none, not {text}"))),
        },
    };
    let headers = match variables.find("HEADERS") {
        Some((name, list)) => headers(&name, &list)?,
        None => Vec::new(),
    };
    let client = match (variables.path("CLIENT_CERTIFICATE"), variables.path("CLIENT_KEY")) {
        (Some(certificate), Some(key)) => Some((certificate, key)),
        (None, None) => None,
        _ => return Err(usage(
            "set both OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE and OTEL_EXPORTER_OTLP_CLIENT_KEY, or \
                 neither"
                .into(),
        )),
    };
    let timeout = match variables.find("TIMEOUT") {
        Some((name, _)) => milliseconds(&name, variables.get)?,
        None => None,
    };
    Ok(Target {
        url,
        headers,
        certificate: variables.path("CERTIFICATE"),
        client,
        timeout: timeout.unwrap_or(Duration::from_secs(10)),
        gzip,
    })
}

fn parse(what: &str, text: &str) -> Result<Uri, Error> {
    let needed = || {
        usage(format!(
            "{what} requires the URL of an OTLP/HTTP receiver, such as http://127.0.0.1:4318; put TARGET \
             before the options"
        ))
    };
    let uri: Uri = text.parse().map_err(|_| needed())?;
    if !matches!(uri.scheme_str(), Some("http" | "https")) {
        return Err(needed());
    }
    let authority = uri.authority().ok_or_else(needed)?;
    // Do not print it: it may be a password.
    if authority.as_str().contains('@') {
        return Err(usage(format!(
            "{what}: other users can see a user name and password in a URL; set the header \
             authorization=... in OTEL_EXPORTER_OTLP_HEADERS instead"
        )));
    }
    Ok(uri)
}

/// The URL of a signal below the base URL of all.
fn below(base: &Uri, path: &str) -> Uri {
    let mut parts = base.clone().into_parts();
    let whole = format!("{}{path}", base.path().trim_end_matches('/'));
    parts.path_and_query = whole.parse().ok();
    Uri::from_parts(parts).unwrap_or_else(|_| base.clone())
}

/// A variable with a number of milliseconds.
pub fn milliseconds(
    name: &str,
    get: &dyn Fn(&str) -> Option<String>,
) -> Result<Option<Duration>, Error> {
    let Some(text) = get(name).filter(|text| !text.is_empty()) else { return Ok(None) };
    match text.parse() {
        Ok(number @ 100..=3_600_000) => Ok(Some(Duration::from_millis(number))),
        _ => Err(usage(format!("{name} must be a number of milliseconds between 100 and 3600000"))),
    }
}

/// Parses "name=value,name=value" with percent-encoded values. Errors do not show the values.
fn pairs(what: &str, list: &str) -> Result<Vec<(String, String)>, Error> {
    let bad = || {
        usage(format!(
            "{what} must have the form name=value,name=value, with percent-encoded values"
        ))
    };
    list.split(',')
        .map(str::trim)
        .filter(|pair| !pair.is_empty())
        .map(|pair| {
            let (name, value) = pair.split_once('=').ok_or_else(bad)?;
            let value = decoded(value.trim()).ok_or_else(bad)?;
            Ok((name.trim().to_string(), value))
        })
        .collect()
}

fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::new();
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        let byte = match byte {
            b'%' => {
                let mut digit = || char::from(rest.next()?).to_digit(16);
                u8::try_from(digit()? * 16 + digit()?).ok()?
            }
            other => other,
        };
        bytes.push(byte);
    }
    String::from_utf8(bytes).ok()
}

fn headers(what: &str, list: &str) -> Result<Vec<(HeaderName, HeaderValue)>, Error> {
    let header = |(name, value): (String, String)| {
        let name = HeaderName::try_from(name).ok()?;
        let mut value = HeaderValue::try_from(value).ok()?;
        value.set_sensitive(true);
        Some((name, value))
    };
    let all: Option<Vec<_>> = pairs(what, list)?.into_iter().map(header).collect();
    all.ok_or_else(|| {
        usage(format!("{what} has a name or value that is not valid in an HTTP header"))
    })
}

/// Reads the file of a certificate or a key.
pub fn read(path: &Path) -> Result<Vec<u8>, Error> {
    files::read_named(path, 1 << 20)
        .map_err(|error| Error::Failed(format!("could not read {}: {error}", path.display())))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn get<'v>(variables: &'v [(&str, &str)]) -> impl Fn(&str) -> Option<String> + 'v {
        |name| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, value)| value.to_string())
        }
    }

    fn targets_of(url: Option<&str>, variables: &[(&str, &str)]) -> Result<[Target; 2], Error> {
        let of = |signal| target(url, signal, &get(variables));
        Ok([of(Signal::Metrics)?, of(Signal::Logs)?])
    }

    fn urls(url: Option<&str>, variables: &[(&str, &str)]) -> [String; 2] {
        targets_of(url, variables).unwrap().map(|target| target.url.to_string())
    }

    #[test]
    fn the_option_comes_before_the_variable_of_a_signal_and_that_before_the_general_one() {
        let default = ["http://localhost:4318/v1/metrics", "http://localhost:4318/v1/logs"];
        assert_eq!(urls(None, &[]), default);
        let all = ("OTEL_EXPORTER_OTLP_ENDPOINT", "https://otel:443/base/");
        let one = ("OTEL_EXPORTER_OTLP_LOGS_ENDPOINT", "http://logs:1/as/it/is?key=1");
        assert_eq!(
            urls(None, &[all, one]),
            ["https://otel:443/base/v1/metrics", "http://logs:1/as/it/is?key=1"]
        );
        let given = ["http://[::1]:4318/v1/metrics", "http://[::1]:4318/v1/logs"];
        assert_eq!(urls(Some("http://[::1]:4318"), &[all, one]), given);
    }

    #[test]
    fn headers_are_decoded_and_shown_nowhere() {
        let headers = "authorization=Bearer%20s3cret, x-scope=a";
        let settings = targets_of(
            Some("http://collector:4318"),
            &[
                ("OTEL_EXPORTER_OTLP_HEADERS", headers),
                ("OTEL_EXPORTER_OTLP_METRICS_HEADERS", "a=b"),
            ],
        );
        let [metrics, logs] = settings.unwrap();
        assert_eq!(logs.headers[0].1, "Bearer s3cret");
        assert_eq!(metrics.headers.len(), 1);
        assert!(logs.exposes_headers());
        for (url, exposes) in
            [("http://localhost:1", false), ("http://127.0.0.2:1", false), ("https://c:1", false)]
        {
            let [metrics, _] =
                targets_of(Some(url), &[("OTEL_EXPORTER_OTLP_HEADERS", "a=b")]).unwrap();
            assert_eq!(metrics.exposes_headers(), exposes, "{url}");
        }
        assert!(!format!("{logs:?}").contains("s3cret"));
        for bad in ["s3cret", "a=s3cret%zz", "a=s3cret%0a", "s3 cret=1"] {
            let error = targets_of(None, &[("OTEL_EXPORTER_OTLP_HEADERS", bad)]).unwrap_err();
            assert!(error.is_usage());
            assert!(error.to_string().contains("OTEL_EXPORTER_OTLP_HEADERS"), "{error}");
            assert!(!error.to_string().contains("s3"), "{error}");
        }
    }

    #[test]
    fn what_cannot_work_is_refused_with_the_remedy() {
        for (url, variables, remedy) in [
            (Some("/var/lib/postgresql/15/main"), &[][..], "TARGET"),
            (Some("ftp://host"), &[], "http://127.0.0.1:4318"),
            (Some("https://me:s3cret@host"), &[], "OTEL_EXPORTER_OTLP_HEADERS"),
            (None, &[("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")], "4318"),
            (None, &[("OTEL_EXPORTER_OTLP_COMPRESSION", "zstd")], "gzip or none"),
            (None, &[("OTEL_EXPORTER_OTLP_TIMEOUT", "10s")], "milliseconds"),
            (None, &[("OTEL_EXPORTER_OTLP_CLIENT_KEY", "/k")], "or neither"),
        ] {
            let error = targets_of(url, variables).unwrap_err();
            assert!(error.is_usage() && error.to_string().contains(remedy), "{error}");
            assert!(!error.to_string().contains("s3cret"), "{error}");
        }
    }

    #[test]
    fn the_resource_comes_from_the_environment_too() {
        let variables = [
            ("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=prod,team=a%2Cb"),
            ("OTEL_SERVICE_NAME", "shop-db"),
        ];
        let pair = |key: &str, value: &str| (key.to_string(), value.to_string());
        assert_eq!(
            resource(&get(&variables)).unwrap(),
            [
                pair("deployment.environment.name", "prod"),
                pair("team", "a,b"),
                pair("service.name", "shop-db")
            ]
        );
    }

    #[test]
    fn empty_variables_are_none_and_the_others_are_kept_as_they_are_meant() {
        let [metrics, logs] = targets_of(
            None,
            &[
                ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://all:1"),
                ("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", ""),
                ("OTEL_EXPORTER_OTLP_LOGS_ENDPOINT", "http://logs:1/in?key=s3cret"),
                ("OTEL_EXPORTER_OTLP_TIMEOUT", "2500"),
                ("OTEL_EXPORTER_OTLP_LOGS_COMPRESSION", "gzip"),
            ],
        )
        .unwrap();
        assert_eq!(
            (metrics.shown().as_str(), logs.shown().as_str()),
            ("http://all:1/v1/metrics", "http://logs:1/in")
        );
        assert_eq!(
            (metrics.timeout, metrics.gzip, logs.gzip),
            (Duration::from_millis(2500), false, true)
        );
        let [default, _] = targets_of(None, &[]).unwrap();
        assert_eq!((default.timeout, default.gzip), (Duration::from_secs(10), false));
    }
}
