// SPDX-License-Identifier: PostgreSQL
//! The location of a fleet's recordings: `ROOT/v1/TABLE/cluster=C/host=H/date=D/NAME.parquet`.

use std::fmt::{Display, Formatter};

use crate::window::Window;
use crate::Dialect;

/// The version of the layout.
const LAYOUT: &str = "v1";

/// A directory, or a prefix in object storage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Root(String);

impl Root {
    /// Parses the absolute path of a directory, `file:///PATH`, `s3://BUCKET/PREFIX`, `gs://...` or the URL of an
    /// S3 endpoint.
    pub fn parse(text: &str) -> Result<Root, String> {
        let path = text.strip_prefix("file://").unwrap_or(text).trim_end_matches('/');
        if let Some(odd) = path.chars().find(|c| "'\"`*?[]{}\\;".contains(*c) || c.is_control()) {
            return Err(format!("\"{text}\" contains the character {odd:?}, which engines would interpret; rename the directory"));
        }
        let is_known = ["s3", "gs", "http", "https"]
            .iter()
            .any(|scheme| path.starts_with(&format!("{scheme}://")));
        if !is_known && !path.starts_with('/') {
            return Err(format!(
                "\"{text}\" is not an absolute path and does not begin with s3:// or gs://"
            ));
        }
        Ok(Root(path.to_string()))
    }

    /// The directory, unless the root is in object storage.
    pub fn directory(&self) -> Option<&str> {
        self.0.starts_with('/').then_some(&*self.0)
    }

    /// The URL to which recordings are shipped.
    pub fn url(&self) -> String {
        self.directory().map_or_else(|| self.0.clone(), |path| format!("file://{path}"))
    }

    /// The directory of a table.
    pub fn of_table(&self, table: &str) -> String {
        format!("{}/{LAYOUT}/{table}", self.0)
    }

    /// A pattern for a table's files; with a window, those that may have its rows, and few others.
    pub(crate) fn pattern(&self, table: &str, window: Option<&Window>, dialect: Dialect) -> String {
        let any = || ["*"; 4].map(String::from);
        let [cluster, host, date, hour] = window.map_or_else(any, |window| window.pattern(dialect));
        let directory = self.of_table(table);
        format!("{directory}/cluster={cluster}/host={host}/date={date}/{hour}.parquet")
    }

    /// The ClickHouse table function that reads these files.
    pub(crate) fn clickhouse(&self, pattern: &str, format: &str, structure: &str) -> String {
        let structure = structure.replace('\'', "\\'");
        match self.0.split_once("://") {
            Some(("gs", path)) => {
                let path = pattern.replacen(
                    &format!("gs://{path}"),
                    &format!("https://storage.googleapis.com/{path}"),
                    1,
                );
                format!("gcs('{path}', '{format}', '{structure}')")
            }
            Some(_) => format!("s3('{pattern}', '{format}', '{structure}')"),
            None => format!("file('{pattern}', '{format}', '{structure}')"),
        }
    }

    /// Whether this engine can read such a root.
    pub fn is_read_by(&self, dialect: Dialect) -> bool {
        dialect == Dialect::ClickHouse || !self.0.starts_with("http")
    }
}

impl Display for Root {
    fn fmt(&self, to: &mut Formatter<'_>) -> std::fmt::Result {
        to.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_root_is_a_path_or_an_address() {
        assert_eq!(Root::parse("/srv/fleet/").unwrap().directory(), Some("/srv/fleet"));
        assert_eq!(Root::parse("file:///srv/fleet").unwrap().directory(), Some("/srv/fleet"));
        let bucket = Root::parse("s3://bucket/prefix").unwrap();
        assert_eq!(bucket.directory(), None);
        assert_eq!(
            bucket.pattern("frames", None, Dialect::DuckDb),
            "s3://bucket/prefix/v1/frames/cluster=*/host=*/date=*/*.parquet"
        );
        for odd in ["fleet", "ftp://x/y", "/srv/it's", "/srv/*", "/srv/a;b", ""] {
            assert!(Root::parse(odd).is_err(), "{odd}");
        }
    }

    #[test]
    fn each_store_has_its_function_and_its_address() {
        let root = |text: &str| Root::parse(text).unwrap();
        for (text, function, url) in [
            ("/srv/it", "file('/srv/it/x', 'Parquet', 'a \\'b')", "file:///srv/it"),
            ("s3://bucket/it", "s3('s3://bucket/it/x', 'Parquet', 'a \\'b')", "s3://bucket/it"),
            (
                "https://s3.example/it",
                "s3('https://s3.example/it/x', 'Parquet', 'a \\'b')",
                "https://s3.example/it",
            ),
            (
                "gs://bucket/it",
                "gcs('https://storage.googleapis.com/bucket/it/x', 'Parquet', 'a \\'b')",
                "gs://bucket/it",
            ),
        ] {
            let parsed = root(text);
            assert_eq!(parsed.clickhouse(&format!("{text}/x"), "Parquet", "a 'b"), function);
            assert_eq!(parsed.url(), url);
            let read = Dialect::ALL.map(|dialect| parsed.is_read_by(dialect));
            let by_all = !text.starts_with("http");
            assert_eq!(read, [by_all, true, by_all], "{text}");
        }
    }

    #[test]
    fn a_window_limits_the_files_of_a_pattern() {
        let only = crate::HostFilter { cluster: Some("c".into()), host: Some("h".into()) };
        // 2026-03-01, 12:00 to 13:00.
        let noon = 1_772_366_400_000;
        let window = Window::new(noon, noon + 3_600_000, only).unwrap();
        assert_eq!(
            Root::parse("/r").unwrap().pattern("frames", Some(&window), Dialect::DuckDb),
            "/r/v1/frames/cluster=c/host=h/date=2026-03-01/1[1-3]*.parquet"
        );
    }
}
