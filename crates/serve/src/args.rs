// SPDX-License-Identifier: PostgreSQL
//! Arguments of `tally serve`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use error::Error;
use fleet_sql::Root;
use report::Edge;
use view::duration::within;

use super::alert::{AlertSettings, Destination};
use command::{ConnectionFlags, SamplingFlags};
use fleet::{root, Engine};

/// Arguments of `tally serve`.
#[derive(Debug, Args)]
#[command(after_help = "\
The page shows the last few minutes, from memory; /metrics has totals since the segment was created \
(docs/reference-metrics.md). Clients can only read. With --allow-trace, /trace lists the sessions; each \
link traces one session for three seconds and shows what it did, message by message.

With --fleet, the page shows many servers, from their recordings through a query engine \
(docs/fleet.md): sessions and CPU use of the hosts over time, and a table for each query of \
`tally fleet queries`. The queries run at each --interval while somebody has the page open. \
/?cluster=C and /?cluster=C&host=H show one cluster or host. /metrics has the results about the hosts as \
gauges; each server has more metrics of its own.

--otlp sends the same metrics, and events as log records, to an OpenTelemetry receiver, by OTLP \
over HTTP. It reads OTEL_EXPORTER_OTLP_ENDPOINT, _HEADERS, _CERTIFICATE and the other variables of \
the OpenTelemetry specification (docs/opentelemetry.md).

--alert reports problems, as `tally doctor` finds them, to Alertmanager, a webhook or a command: when \
one begins, again while it lasts, and when it ends; with --alert-settings also changed settings.

The page contains statement texts, so a token is required: a random one, printed with the page's \
URL, or one of those in --token-file, which has a line for each user: a name and a token. Scrapers send it as \"Authorization: Bearer TOKEN\". A socket \
(unix:PATH) is accessible to its owner only and needs no token. Only this machine can connect unless \
--listen names another address; then --token-file is required.

Examples:
  tally serve
  tally serve --listen 127.0.0.1:0 --history 30min /var/lib/postgresql/15/main
  tally serve --statements 20
  (umask 077; openssl rand -hex 32 > token)
  tally serve --listen 0.0.0.0:9188 --token-file token \\
    --tls-cert server.crt --tls-key server.key
  tally serve --listen unix:/run/pgtally.sock
  tally serve --otlp http://127.0.0.1:4318 --listen none
  tally serve --alert http://127.0.0.1:9093/api/v2/alerts
  tally serve --fleet --engine duckdb --root s3://bucket/fleet --interval 5min")]
pub struct ServeArgs {
    /// Segment, data directory or connection string
    pub target: Option<String>,
    /// Connection options
    #[command(flatten)]
    pub connection: ConnectionFlags,
    /// How to sample a server
    #[command(flatten)]
    pub sampling: SamplingFlags,
    /// Address to listen on, or unix:PATH; port 0 chooses a free port; "none" serves no page (needs --otlp or
    /// --alert)
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:9188")]
    pub listen: super::Address,
    /// Use the tokens in this file instead of a random one: a single token, or NAME TOKEN in each line; read again when it
    /// changes
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
    /// Encrypt connections with TLS, with the certificate chain in this file (PEM); read again when it changes
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub tls_cert: Option<PathBuf>,
    /// With --tls-cert: private key of the certificate (PEM)
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub tls_key: Option<PathBuf>,
    /// Do not require a token: any user on this machine can read the page and the metrics
    #[arg(long, conflicts_with = "token_file")]
    pub no_token: bool,
    /// Length of an interval, up to 1min [default: 1s]; with --fleet, how often to run the queries, 1s to 1day
    /// [default: 1min]
    #[arg(long, short, value_name = "TIME", value_parser = served_interval)]
    pub interval: Option<Duration>,
    /// The page of a fleet
    #[command(flatten)]
    pub fleet: FleetFlags,
    /// Minimum time to keep intervals for the page
    #[arg(long, value_name = "TIME", default_value = "10min", value_parser = served_history)]
    pub history: Duration,
    /// Include the top N statements in the metrics, and the sum of all others
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=500))]
    pub statements: Option<u32>,
    /// Include in the metrics what the server's catalogs say once a minute: replication, WAL archiving, wraparound, sizes, bloat,
    /// indexes, settings
    #[arg(long)]
    pub health: bool,
    /// Show the slowest executions of statements with their parameters on the page, if the setting pg_tally.trace_parameters
    /// is on. Parameters are data: every client with a token can read them
    #[arg(long)]
    pub parameters: bool,
    /// Send metrics and events to the OTLP/HTTP receiver at this URL [default: from the environment]
    #[arg(long, value_name = "URL", num_args = 0..=1)]
    pub otlp: Option<Option<String>>,
    /// How often to send metrics [default: OTEL_METRIC_EXPORT_INTERVAL, or 10s]
    #[arg(long, value_name = "TIME", value_parser = sent_interval, requires = "otlp")]
    pub otlp_interval: Option<Duration>,
    /// Tell somebody about problems
    #[command(flatten)]
    pub alerts: AlertFlags,
    /// Allow clients to trace a session for a few seconds, at /trace (docs/trace.md)
    #[arg(long)]
    pub allow_trace: bool,
    /// Print the addresses as JSON (docs/reference-json.md)
    #[arg(long)]
    pub json: bool,
}

/// Whom to tell about problems.
#[derive(Debug, Args)]
pub struct AlertFlags {
    /// Send problems to Alertmanager (a URL that ends in /api/v2/alerts), a Slack-compatible webhook (another URL) or a
    /// shell command, which reads JSON; @FILE for a file that contains it
    #[arg(long, value_name = "URL|COMMAND", value_parser = alert_destination)]
    pub alert: Option<String>,
    /// With --alert: length of the intervals to diagnose
    #[arg(long, value_name = "TIME", default_value = "10s", requires = "alert", value_parser = alert_interval)]
    pub alert_interval: Duration,
    /// With --alert: how often to report a problem that lasts; Alertmanager has its own setting
    #[arg(long, value_name = "TIME", default_value = "1h", requires = "alert", value_parser = alert_repeat)]
    pub alert_repeat: Duration,
    /// With --alert: do not report the rules that this file lists, one per line ("all": every rule), optionally with an end time
    #[arg(long, value_name = "FILE", requires = "alert")]
    pub alert_silence: Option<PathBuf>,
    /// With --alert: also report changed settings of the server, all changes within --alert-repeat together; values that may
    /// contain passwords are left out
    #[arg(long, requires = "alert")]
    pub alert_settings: bool,
}

impl AlertFlags {
    /// What to tell, and whom; `None`: nobody. Reads the file that @FILE names.
    pub(super) fn settings(&self) -> Result<Option<AlertSettings>, Error> {
        let Some(text) = &self.alert else { return Ok(None) };
        let destination =
            Destination::parse(text).map_err(|error| Error::Failed(format!("--alert: {error}")))?;
        Ok(Some(AlertSettings {
            destination,
            every: self.alert_interval,
            repeat: self.alert_repeat,
            silence: self.alert_silence.clone(),
            changes: self.alert_settings,
        }))
    }
}

/// The page of a fleet; --cluster and --host restrict it.
#[derive(Debug, Args)]
pub struct FleetFlags {
    /// Serve a page about many servers, queried from their recordings; --host then selects one of them
    #[arg(long, requires = "engine", conflicts_with_all = [
        "target", "port", "username", "dbname", "history", "statements", "health", "parameters", "otlp", "otlp_interval", "alert",
        "allow_trace",
        "samples", "budget",
    ])]
    pub fleet: bool,
    /// With --fleet: engine, as in `tally fleet ask`
    #[arg(long, requires = "fleet", value_parser = Engine::parse)]
    pub engine: Option<Engine>,
    /// With --fleet: directory or bucket of the recordings; without it, the server must have the views
    #[arg(long, requires = "fleet", value_parser = root)]
    pub root: Option<Root>,
    /// With --fleet: start of the time range, which ends now: 14:30, 2026-03-01, or -2h [default: -1h]
    #[arg(long, value_name = "TIME", requires = "fleet", allow_hyphen_values = true, value_parser = Edge::parse)]
    pub since: Option<Edge>,
    /// With --fleet: only this cluster
    #[arg(long, value_name = "NAME", requires = "fleet")]
    pub cluster: Option<String>,
}

impl ServeArgs {
    /// How often to read the server, or to run the queries.
    pub fn pace(&self) -> Result<Duration, Error> {
        let (usual, min, max) = match self.fleet.fleet {
            true => (60, Duration::from_secs(1), 86_400),
            false => (1, Duration::from_millis(100), 60),
        };
        let pace = self.interval.unwrap_or(Duration::from_secs(usual));
        match (min..=Duration::from_secs(max)).contains(&pace) {
            true => Ok(pace),
            false => Err(Error::Usage(format!("--interval must be between {min:?} and {max}s"))),
        }
    }
}

fn served_interval(text: &str) -> Result<Duration, String> {
    within(text, Duration::from_millis(100), Duration::from_secs(86_400))
}

fn sent_interval(text: &str) -> Result<Duration, String> {
    within(text, Duration::from_secs(1), Duration::from_secs(3600))
}

/// A URL or command is checked here, a file when the server starts.
fn alert_destination(text: &str) -> Result<String, String> {
    if !text.starts_with('@') {
        Destination::parse(text)?;
    }
    Ok(text.to_owned())
}

fn alert_interval(text: &str) -> Result<Duration, String> {
    within(text, Duration::from_secs(1), Duration::from_secs(600))
}

fn alert_repeat(text: &str) -> Result<Duration, String> {
    within(text, Duration::from_secs(1), Duration::from_secs(7 * 86_400))
}

fn served_history(text: &str) -> Result<Duration, String> {
    within(text, Duration::from_secs(60), Duration::from_secs(3600))
}
