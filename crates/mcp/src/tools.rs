// SPDX-License-Identifier: PostgreSQL
//! The tools: each a verb that only reads, and the options that a client may set. One table gives the schema that clients
//! see, the check of what they send, and the verb's arguments.

use std::path::PathBuf;
use std::time::Duration;

use rmcp::model::{JsonObject, Tool as Description, ToolAnnotations};
use serde_json::{json, Map, Value};

/// What `tally mcp` was told to read.
pub struct Sources {
    /// TARGET; `None`: the server that psql would connect to.
    pub target: Option<String>,
    /// The recording to report on.
    pub recording: Option<PathBuf>,
    /// Root and engine of a fleet.
    pub fleet: Option<(String, String)>,
}

/// What a tool reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Source {
    Server,
    Recording,
    Fleet,
}

/// What a parameter may be.
#[derive(Debug, Clone, Copy)]
enum Kind {
    /// A whole number within these bounds.
    Number(u64, u64),
    /// The same, in seconds.
    Seconds(u64, u64),
    /// One of these words.
    OneOf(&'static [&'static str]),
    /// A text, such as a name or a time.
    Text,
    /// A query id: a 64-bit number as text.
    Id,
    /// Whether an option is given.
    Flag,
}

/// A parameter of a tool, and the option of the verb that it sets.
#[derive(Debug, Clone, Copy)]
pub struct Parameter {
    name: &'static str,
    /// With its dashes; empty: the verb's first argument.
    option: &'static str,
    kind: Kind,
    about: &'static str,
    /// Used if the client gives none.
    usual: Option<&'static str>,
    required: bool,
}

impl Parameter {
    const fn new(
        name: &'static str,
        option: &'static str,
        kind: Kind,
        about: &'static str,
    ) -> Self {
        Parameter { name, option, kind, about, usual: None, required: false }
    }

    const fn usual(mut self, value: &'static str) -> Self {
        self.usual = Some(value);
        self
    }

    const fn required(mut self) -> Self {
        self.required = true;
        self
    }

    fn schema(&self) -> Value {
        let mut schema = match self.kind {
            Kind::Number(least, most) | Kind::Seconds(least, most) => {
                json!({ "type": "integer", "minimum": least, "maximum": most })
            }
            Kind::OneOf(words) => json!({ "type": "string", "enum": words }),
            Kind::Text | Kind::Id => json!({ "type": "string" }),
            Kind::Flag => json!({ "type": "boolean" }),
        };
        schema["description"] = self.about.into();
        schema
    }

    /// The option with its value, as one argument, so that no value can be another option; `None` if it is not given.
    fn argument(&self, given: Option<&Value>) -> Result<Option<String>, String> {
        let wrong = |expected: String| Err(format!("{} must be {expected}", self.name));
        let value = match (given, self.kind) {
            (None | Some(Value::Null), _) if self.required => {
                return Err(format!("{} is missing", self.name))
            }
            (None | Some(Value::Null), _) => match self.usual {
                Some(usual) => usual.to_string(),
                None => return Ok(None),
            },
            (Some(value), Kind::Number(least, most)) => match value.as_u64() {
                Some(number) if (least..=most).contains(&number) => number.to_string(),
                _ => return wrong(format!("a whole number from {least} to {most}")),
            },
            (Some(value), Kind::Seconds(least, most)) => match value.as_u64() {
                Some(number) if (least..=most).contains(&number) => format!("{number}s"),
                _ => return wrong(format!("a whole number of seconds from {least} to {most}")),
            },
            (Some(value), Kind::OneOf(words)) => match value.as_str() {
                Some(word) if words.contains(&word) => word.to_string(),
                _ => return wrong(format!("one of {}", words.join(", "))),
            },
            (Some(value), Kind::Text) => match value.as_str() {
                Some(text) if !text.contains('\0') => text.to_string(),
                _ => return wrong("a text".into()),
            },
            (Some(value), Kind::Id) => {
                match value.as_str().and_then(|text| text.parse::<i64>().ok()).or(value.as_i64()) {
                    Some(id) => id.to_string(),
                    None => return wrong("a query id, as a text".into()),
                }
            }
            (Some(value), Kind::Flag) => match value.as_bool() {
                Some(true) => return Ok(Some(self.option.to_string())),
                Some(false) => return Ok(None),
                None => return wrong("true or false".into()),
            },
        };
        // A query's name comes from OneOf, so it cannot begin with a dash.
        Ok(Some(if self.option.is_empty() { value } else { format!("{}={value}", self.option) }))
    }
}

/// The fields of an answer.
#[derive(Debug)]
pub struct Fields {
    /// In every answer.
    pub always: &'static [&'static str],
    /// Unless the client names others.
    pub usual: &'static [&'static str],
    /// Further fields that it can name.
    others: &'static [&'static str],
}

/// A verb that a client may run.
#[derive(Debug)]
pub struct Tool {
    pub name: &'static str,
    about: &'static str,
    source: Source,
    /// The verb with what is always given.
    verb: &'static [&'static str],
    parameters: &'static [Parameter],
    /// `None`: all of them.
    pub fields: Option<Fields>,
    /// The name of a list, if the verb prints a line for each element.
    pub list: Option<&'static str>,
}

/// Parameters of every tool, which no verb has.
pub const ROWS: &str = "rows";
pub const MASK_TEXTS: &str = "mask_texts";
/// A parameter of tools with `Tool::fields`.
pub const FIELDS: &str = "fields";
const MOST_ROWS: u64 = 200;
const USUAL_ROWS: u64 = 20;

/// A time that a verb observes unless it is told another one, and the longest that it may take besides.
const USUAL_SECONDS: u64 = 10;
const GRACE: u64 = 60;

const OBSERVED: Parameter = Parameter::new(
    "seconds",
    "--for",
    Kind::Seconds(1, 60),
    "How long to watch, in seconds [default: 10]",
)
.usual("10s");
const SINCE: &str =
    "Start of the time range: 14:30, 2026-03-01, \"2026-03-01 14:30\", or -2h (before the end)";

/// All tools.
pub const TOOLS: &[Tool] = &[
    Tool {
        name: "doctor",
        about: "Watches the server and names its problems, the worst first: who or what causes each, how much of the sessions' \
                time it takes, the evidence, and what to do. `limits` say what bounds its load; they are no problems.",
        source: Source::Server,
        verb: &["doctor"],
        parameters: &[OBSERVED],
        fields: None,
        list: None,
    },
    Tool {
        name: "top",
        about: "Where the server's time goes in an interval: `ledger` by phase and activity (a wait event, or cpu), `sessions`, \
                `statements`, `waits`, `io`, `commits`, `checkpoints`, `kernel`.",
        source: Source::Server,
        verb: &["top", "--count=1"],
        parameters: &[Parameter::new(
            "seconds",
            "--interval",
            Kind::Seconds(1, 60),
            "Length of the interval, in seconds [default: 5]",
        )
        .usual("5s")],
        fields: Some(Fields {
            always: &[
                "time", "interval_seconds", "level", "server", "cores", "wall_seconds", "busy_seconds", "commands_handled",
                "exact", "sampling", "healthy",
            ],
            usual: &["ledger", "sessions", "diagnoses", "limits"],
            others: &[
                "waits", "commands", "lwlocks", "locks", "functions", "files", "commits", "checkpoints", "wal", "statistics",
                "statements", "blocking", "io", "kernel", "overflow", "ended",
            ],
        }),
        list: None,
    },
    Tool {
        name: "blocking",
        about: "Sessions that have waited for a lock longer than 100 ms, and who blocks them: the root with most waiters first, \
                what it does and did last.",
        source: Source::Server,
        verb: &["blocking"],
        parameters: &[],
        fields: None,
        list: None,
    },
    Tool {
        name: "statements",
        about: "The statements with most time: calls, execution times with quantiles, and where the time goes by class of wait. \
                Totals since the last reset unless `seconds` is given.",
        source: Source::Server,
        verb: &["statements"],
        parameters: &[
            Parameter::new("seconds", "--interval", Kind::Seconds(1, 60), "Show an interval of this length, in seconds"),
            Parameter::new(
                "sort",
                "--sort",
                Kind::Text,
                "time, calls, mean, p99, max, rows, cpu, io, lock, lwlock, client, ipc, or an activity such as IO:DataFileRead \
                 [default: time]",
            ),
            Parameter::new("database", "--database", Kind::Text, "Only statements of this database"),
            Parameter::new("user", "--user", Kind::Text, "Only statements of this user"),
            Parameter::new("nested", "--all", Kind::Flag, "Include nested statements, such as those in functions"),
        ],
        fields: Some(Fields {
            always: &["time", "interval_seconds", "seconds", "sampling"],
            usual: &["table", "flood", "paused", "rows", "current"],
            others: &["plans"],
        }),
        list: None,
    },
    Tool {
        name: "plans",
        about: "One statement: all its figures, and the plans that were noted for it, with their times.",
        source: Source::Server,
        verb: &["statements", "--all"],
        parameters: &[
            Parameter::new("queryid", "--id", Kind::Id, "The statement's `queryid`, as a text").required(),
            Parameter::new("seconds", "--interval", Kind::Seconds(1, 60), "Show an interval of this length, in seconds"),
        ],
        fields: Some(Fields {
            always: &["time", "interval_seconds", "seconds", "sampling"],
            usual: &["rows", "plans", "current"],
            others: &[],
        }),
        list: None,
    },
    Tool {
        name: "events",
        about: "Notable events, the newest last: slow operations, blocked sessions, checkpoints, warnings.",
        source: Source::Server,
        verb: &["events"],
        parameters: &[
            Parameter::new("last", "--last", Kind::Number(1, MOST_ROWS), "How many [default: 20]").usual("20"),
            Parameter::new("since", "--since", Kind::Text, "Only those within this time: 10min, 90s, 2h"),
            Parameter::new(
                "kind",
                "--kind",
                Kind::OneOf(&["note", "warning", "blocked", "slow", "checkpoint"]),
                "Only events of this kind",
            ),
        ],
        fields: None,
        list: Some("events"),
    },
    Tool {
        name: "status",
        about: "What is measured on the server, at which level, what is not, and whether anything is missing.",
        source: Source::Server,
        verb: &["status"],
        parameters: &[],
        fields: None,
        list: None,
    },
    Tool {
        name: "report",
        about: "A span of a recording: the state of the server, findings with remedies, and tables of waits, statements, \
                sessions, checkpoints.",
        source: Source::Recording,
        verb: &["report"],
        parameters: &[
            Parameter::new("from", "--since", Kind::Text, SINCE),
            Parameter::new("to", "--until", Kind::Text, "End of the time range, in the same forms"),
            Parameter::new("cluster", "--cluster", Kind::Text, "With a bucket of several clusters: the cluster of the machine"),
            Parameter::new("host", "--host", Kind::Text, "With a recording of several machines: the machine"),
        ],
        fields: Some(Fields {
            always: &["title", "measured"],
            usual: &["verdict", "findings", "load", "totals", "gaps"],
            others: &["tables", "marks", "texts"],
        }),
        list: None,
    },
    Tool {
        name: "fleet",
        about: "A question about many servers, answered from their recordings. hosts: what is recorded; load, waits: where each \
                host's time goes; statements, p99: over all hosts; regressions: statements slower than in another window; \
                outliers; capacity; blocking; checkpoints.",
        source: Source::Fleet,
        verb: &["fleet", "ask"],
        parameters: &[
            Parameter::new(
                "query",
                "",
                Kind::OneOf(&[
                    "hosts", "load", "waits", "statements", "regressions", "outliers", "capacity", "blocking", "checkpoints",
                    "p99",
                ]),
                "The question",
            )
            .required(),
            Parameter::new("since", "--since", Kind::Text, SINCE),
            Parameter::new("until", "--until", Kind::Text, "End of the time range"),
            Parameter::new(
                "against",
                "--against",
                Kind::Text,
                "For regressions: FROM..TO to compare with [default: equally long, just before]",
            ),
            Parameter::new("cluster", "--cluster", Kind::Text, "Only this cluster"),
            Parameter::new("host", "--host", Kind::Text, "Only this host"),
        ],
        fields: None,
        list: None,
    },
    Tool {
        name: "fleet_doctor",
        about: "Diagnoses every host of the fleet from its recording: problems, the worst first, and what bounds the load.",
        source: Source::Fleet,
        verb: &["fleet", "doctor"],
        parameters: &[
            Parameter::new("since", "--since", Kind::Text, SINCE),
            Parameter::new("cluster", "--cluster", Kind::Text, "Only this cluster"),
            Parameter::new("host", "--host", Kind::Text, "Only this host"),
        ],
        fields: None,
        list: None,
    },
];

/// The tools that these sources allow.
pub fn offered(sources: &Sources) -> impl Iterator<Item = &'static Tool> + use<> {
    let (recording, fleet) = (sources.recording.is_some(), sources.fleet.is_some());
    TOOLS.iter().filter(move |tool| match tool.source {
        Source::Server => true,
        Source::Recording => recording,
        Source::Fleet => fleet,
    })
}

/// Whether the client has set this flag.
pub fn flag(given: &Map<String, Value>, name: &str) -> bool {
    given.get(name).and_then(Value::as_bool).unwrap_or(false)
}

/// How many elements of each list the client wants.
pub fn rows(given: &Map<String, Value>) -> usize {
    // At most MOST_ROWS, so that it fits.
    given.get(ROWS).and_then(Value::as_u64).unwrap_or(USUAL_ROWS) as usize
}

impl Tool {
    /// As a client sees it.
    pub fn described(&self) -> Description {
        let mut properties = JsonObject::new();
        for parameter in self.parameters {
            properties.insert(parameter.name.into(), parameter.schema());
        }
        if let Some(fields) = &self.fields {
            let about = format!("Fields of the answer [default: {}]", fields.usual.join(", "));
            let all: Vec<&str> = fields.usual.iter().chain(fields.others).copied().collect();
            properties.insert(
                FIELDS.into(),
                json!({ "type": "array", "items": { "type": "string", "enum": all }, "description": about }),
            );
        }
        properties.insert(
            ROWS.into(),
            json!({ "type": "integer", "minimum": 1, "maximum": MOST_ROWS,
                "description": "Most elements of each list; `left_out` has the number of the others [default: 20]" }),
        );
        properties.insert(
            MASK_TEXTS.into(),
            json!({ "type": "boolean",
                "description": "Replace constants in statements' texts, and quoted strings in sentences, by ?" }),
        );
        let required = self.parameters.iter().filter(|parameter| parameter.required);
        let mut schema = JsonObject::new();
        schema.insert("type".into(), "object".into());
        schema.insert("properties".into(), properties.into());
        schema.insert("required".into(), required.map(|parameter| parameter.name).collect());
        schema.insert("additionalProperties".into(), false.into());
        let reads = ToolAnnotations::default().read_only(true).open_world(false);
        Description::new(self.name, self.about, schema).annotate(reads)
    }

    /// The arguments of the command for what a client has sent. The error names what is wrong.
    pub fn arguments(
        &self,
        sources: &Sources,
        given: &Map<String, Value>,
    ) -> Result<Vec<String>, String> {
        self.check(given)?;
        let mut arguments: Vec<String> = self.verb.iter().map(|word| word.to_string()).collect();
        arguments.push("--json".into());
        for parameter in self.parameters {
            arguments.extend(parameter.argument(given.get(parameter.name))?);
        }
        let operand = match self.source {
            Source::Server => sources.target.clone(),
            Source::Recording => {
                sources.recording.as_ref().map(|path| path.to_string_lossy().into_owned())
            }
            Source::Fleet => {
                let (root, engine) = sources.fleet.as_ref().ok_or("tally mcp reads no fleet")?;
                arguments.extend([format!("--root={root}"), format!("--engine={engine}")]);
                None
            }
        };
        if let Some(operand) = operand {
            arguments.extend(["--".into(), operand]);
        }
        Ok(arguments)
    }

    /// Names what the client has sent that no parameter takes, and checks those that are no option of the verb.
    fn check(&self, given: &Map<String, Value>) -> Result<(), String> {
        for (name, value) in given {
            let is_ok = match name.as_str() {
                MASK_TEXTS => value.is_boolean(),
                ROWS => value.as_u64().is_some_and(|rows| (1..=MOST_ROWS).contains(&rows)),
                FIELDS => match &self.fields {
                    Some(fields) => value.as_array().is_some_and(|names| {
                        names.iter().all(|name| {
                            name.as_str().is_some_and(|name| {
                                fields.usual.contains(&name) || fields.others.contains(&name)
                            })
                        })
                    }),
                    None => return Err(self.unknown(name)),
                },
                name if self.parameters.iter().any(|parameter| parameter.name == name) => true,
                _ => return Err(self.unknown(name)),
            };
            if !is_ok {
                return Err(format!("{name} is not as the tool's schema has it: {value}"));
            }
        }
        Ok(())
    }

    fn unknown(&self, name: &str) -> String {
        format!("{} has no parameter {name}", self.name)
    }

    /// How to ask for less, as far as this tool's parameters allow it.
    pub fn remedy(&self) -> String {
        let has = |name: &str| self.parameters.iter().any(|parameter| parameter.name == name);
        let spans =
            [("from", "to"), ("since", "until")].map(|(from, to)| match (has(from), has(to)) {
                (true, true) => Some(format!("a narrower span ({from}, {to})")),
                (true, false) => Some(format!("a narrower span ({from})")),
                _ => None,
            });
        let others = [("host", "one host (host)"), ("database", "one database (database)")];
        let others = others.into_iter().filter(|(name, _)| has(name)).map(|(_, text)| text.into());
        let ways: Vec<String> = spans.into_iter().flatten().chain(others).collect();
        match ways.is_empty() {
            // `rows` only cuts what the verb has printed.
            true => "this tool cannot return less; run the verb on the command line".into(),
            false => format!("ask for {}", ways.join(" or ")),
        }
    }

    /// How long the verb may take.
    pub fn time_limit(&self, given: &Map<String, Value>) -> Duration {
        let seconds = given.get("seconds").and_then(Value::as_u64).unwrap_or(USUAL_SECONDS);
        Duration::from_secs(seconds.min(60) + GRACE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sources() -> Sources {
        Sources {
            target: Some("host=/run".into()),
            recording: Some("/srv/r".into()),
            fleet: Some(("/srv/fleet".into(), "duckdb".into())),
        }
    }

    fn arguments(tool: &str, given: Value) -> Result<String, String> {
        let tool = TOOLS.iter().find(|known| known.name == tool).unwrap();
        tool.arguments(&sources(), given.as_object().unwrap()).map(|arguments| arguments.join(" "))
    }

    #[test]
    fn what_a_client_sends_becomes_values_of_options() {
        assert_eq!(arguments("doctor", json!({})).unwrap(), "doctor --json --for=10s -- host=/run");
        assert_eq!(
            arguments("doctor", json!({ "seconds": 3, "rows": 5, "mask_texts": true })).unwrap(),
            "doctor --json --for=3s -- host=/run"
        );
        assert_eq!(
            arguments("plans", json!({ "queryid": "-7143523112337563914" })).unwrap(),
            "statements --all --json --id=-7143523112337563914 -- host=/run"
        );
        assert_eq!(
            arguments("statements", json!({ "database": "--help", "nested": true })).unwrap(),
            "statements --json --database=--help --all -- host=/run"
        );
        assert_eq!(
            arguments("report", json!({ "from": "-1h" })).unwrap(),
            "report --json --since=-1h -- /srv/r"
        );
        assert_eq!(
            arguments("fleet", json!({ "query": "load", "since": "-2h" })).unwrap(),
            "fleet ask --json load --since=-2h --root=/srv/fleet --engine=duckdb"
        );
    }

    #[test]
    fn who_asks_for_too_much_learns_how_to_ask_for_less() {
        let of = |name: &str| TOOLS.iter().find(|tool| tool.name == name).unwrap().remedy();
        assert_eq!(of("report"), "ask for a narrower span (from, to) or one host (host)");
        assert_eq!(of("fleet"), "ask for a narrower span (since, until) or one host (host)");
        assert_eq!(of("events"), "ask for a narrower span (since)");
        assert_eq!(of("statements"), "ask for one database (database)");
        assert!(of("blocking").ends_with("run the verb on the command line"));
    }

    #[test]
    fn what_does_not_fit_is_an_error_that_names_it() {
        for (tool, given, error) in [
            (
                "doctor",
                json!({ "seconds": 0 }),
                "seconds must be a whole number of seconds from 1 to 60",
            ),
            ("doctor", json!({ "seconds": "1; rm" }), "seconds must be"),
            ("doctor", json!({ "target": "host=evil" }), "doctor has no parameter target"),
            ("doctor", json!({ "fields": [] }), "doctor has no parameter fields"),
            (
                "top",
                json!({ "fields": ["passwords"] }),
                "fields is not as the tool's schema has it",
            ),
            ("top", json!({ "rows": 0 }), "rows is not"),
            ("plans", json!({}), "queryid is missing"),
            ("plans", json!({ "queryid": "--all" }), "queryid must be a query id"),
            ("fleet", json!({ "query": "--help" }), "query must be one of hosts, load"),
            ("statements", json!({ "nested": 1 }), "nested must be true or false"),
        ] {
            let found = arguments(tool, given).unwrap_err();
            assert!(found.starts_with(error), "{found}");
        }
    }

    #[test]
    fn a_recording_and_a_fleet_are_offered_only_if_they_were_named() {
        let names = |sources: &Sources| offered(sources).map(|tool| tool.name).collect::<Vec<_>>();
        let bare = Sources { target: None, recording: None, fleet: None };
        assert_eq!(
            names(&bare),
            ["doctor", "top", "blocking", "statements", "plans", "events", "status"]
        );
        assert_eq!(names(&sources()).len(), TOOLS.len());
        let named: Vec<&str> = TOOLS.iter().map(|tool| tool.name).collect();
        let mut distinct = named.clone();
        distinct.dedup();
        assert_eq!(named, distinct);
    }
}
