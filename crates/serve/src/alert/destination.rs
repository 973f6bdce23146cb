// SPDX-License-Identifier: PostgreSQL
//! Where messages go: the value of `--alert`.

use std::fmt;
use std::path::Path;

use ureq::http::Uri;

/// Maximum size of a file that holds a destination, bytes.
const SIZE: u64 = 4096;

/// Where messages are sent.
#[derive(Clone, PartialEq)]
pub enum Destination {
    /// Alertmanager's API, version 2.
    Alertmanager(Uri),
    /// A webhook that takes `{"text": ...}`, as Slack's and Mattermost's do.
    Webhook(Uri),
    /// A command for `sh -c`, with the message as JSON on its standard input.
    Command(String),
}

impl Destination {
    /// A URL, a command, or @FILE: a file that contains one of them, so that other users do not see it in the
    /// list of processes.
    pub fn parse(text: &str) -> Result<Destination, String> {
        let Some(path) = text.strip_prefix('@') else {
            return Destination::from_address(text.trim());
        };
        let content = files::read_named_text(Path::new(path), SIZE)
            .map_err(|error| format!("could not read \"{path}\": {error}"))?;
        Destination::from_address(content.trim())
    }

    fn from_address(text: &str) -> Result<Destination, String> {
        if text.is_empty() {
            return Err("it is empty".to_string());
        }
        if !text.starts_with("http://") && !text.starts_with("https://") {
            return Ok(Destination::Command(text.to_string()));
        }
        let url = text.parse::<Uri>().map_err(|error| format!("not a URL: {error}"))?;
        Ok(match url.path().trim_end_matches('/').ends_with("/api/v2/alerts") {
            true => Destination::Alertmanager(url),
            false => Destination::Webhook(url),
        })
    }
}

/// Omits possible secrets: a webhook's path, a user's password, a command's arguments.
impl fmt::Display for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Destination::Alertmanager(url) | Destination::Webhook(url) => {
                let scheme = url.scheme_str().unwrap_or_default();
                write!(f, "{scheme}://{}", url.host().unwrap_or_default())?;
                url.port_u16().map_or(Ok(()), |port| write!(f, ":{port}"))
            }
            Destination::Command(command) => {
                f.write_str(command.split_whitespace().next().unwrap_or_default())
            }
        }
    }
}

impl fmt::Debug for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_says_which_form_a_message_has() {
        let shown = |text: &str| Destination::parse(text).map(|to| (to.to_string(), to));
        let (text, to) = shown("http://127.0.0.1:9093/api/v2/alerts").unwrap();
        assert!(matches!(to, Destination::Alertmanager(_)));
        assert_eq!(text, "http://127.0.0.1:9093");
        let (text, to) = shown("https://me:word@hooks.example/services/T0/SECRET").unwrap();
        assert!(matches!(to, Destination::Webhook(_)));
        assert_eq!(text, "https://hooks.example");
        let (text, to) = shown("mail -s problem dba@example.com").unwrap();
        assert!(matches!(to, Destination::Command(_)));
        assert_eq!(text, "mail");
        assert!(shown("").is_err() && shown("http://").is_err() && shown("@/no/file").is_err());
    }
}
