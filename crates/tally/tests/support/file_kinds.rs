// SPDX-License-Identifier: PostgreSQL
//! The kind of a file by its path, determined independently of the code under test.

use std::path::{Path, PathBuf};

use scratch::Cluster;

/// Directories that determine a file's kind.
pub struct FileKinds {
    /// The data directory, symbolic links resolved.
    pub data: PathBuf,
    /// The directory of the database that all sessions use.
    pub database: PathBuf,
    /// Directories of tablespaces, and their names in the statistics.
    pub spaces: Vec<(PathBuf, String)>,
}

impl FileKinds {
    /// For a server with one tablespace, `elsewhere`.
    pub fn new(cluster: &Cluster, space: PathBuf) -> Self {
        let sql = "select t.oid::text, d.oid::text from pg_tablespace t, pg_database d \
                   where spcname = 'elsewhere' and datname = current_database()";
        let row = cluster.connect().unwrap().query_one(sql, &[]).unwrap();
        let data = cluster.data_dir().canonicalize().unwrap();
        let database = data.join("base").join(row.get::<_, String>(1));
        Self { data, database, spaces: vec![(space.canonicalize().unwrap(), row.get(0))] }
    }

    /// The path of a file that the server named, with its tablespace's symbolic link resolved.
    pub fn whole(&self, name: &str) -> PathBuf {
        let path = self.data.join(name);
        for (folder, oid) in &self.spaces {
            if let Ok(rest) = path.strip_prefix(self.data.join("pg_tblspc").join(oid)) {
                return folder.join(rest);
            }
        }
        path
    }

    /// Whether it is in the data directory or a tablespace. Since 16, the server opens its files with O_CLOEXEC,
    /// as libraries do.
    pub fn is_data(&self, path: &Path) -> bool {
        path.starts_with(&self.data)
            || self.spaces.iter().any(|(folder, _)| path.starts_with(folder))
    }

    /// Whether the server uses it as a C stream. Those are not instrumented.
    pub fn is_stream(&self, path: &Path) -> bool {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or("");
        // In other directories the server copies such files with read() and write().
        let own = path.starts_with(&self.database) || path.parent() == Some(&self.data);
        name.starts_with("pg_internal.init")
            || (name == "PG_VERSION" && own)
            || name == "out.copy"
            || path.parent().is_some_and(|folder| folder.ends_with("timezonesets"))
    }

    /// The kind of a file.
    pub fn kind(&self, path: &Path) -> String {
        for (folder, oid) in &self.spaces {
            if let Ok(rest) = path.strip_prefix(folder) {
                // Version, database and file; shorter paths are directories.
                let fork = Some(rest).filter(|rest| rest.iter().count() > 2).and_then(fork);
                return fork.map_or("other".into(), |fork| format!("{fork}@{oid}"));
            }
        }
        if path.starts_with("/dev/shm") {
            return "shared memory".into();
        }
        let Ok(path) = path.strip_prefix(&self.data) else { return "other".into() };
        let parts: Vec<&str> = path.iter().filter_map(|part| part.to_str()).collect();
        let name = parts.last().copied().unwrap_or("");
        match parts[..] {
            ["base", _, _, ..] => fork(path).map_or("other".into(), String::from),
            ["global", "pg_control"] => "control".into(),
            ["global", _] => fork(path).map_or("other".into(), |fork| format!("{fork}@pg_global")),
            ["pg_wal", _] if name.len() == 24 || name.starts_with("xlogtemp") => "wal".into(),
            ["pg_logical" | "pg_replslot", _, ..] => "replication".into(),
            ["pg_xact", _] => "slru Xact".into(),
            ["pg_subtrans", _] => "slru Subtrans".into(),
            ["pg_multixact", "offsets", _] => "slru MultiXactOffset".into(),
            ["pg_multixact", "members", _] => "slru MultiXactMember".into(),
            _ => "other".into(),
        }
    }

    /// The relation fork to which a file belongs: "base/5/16384_fsm", "global/1262", "16390/5/t3_16400".
    pub fn relation(&self, path: &Path) -> Option<String> {
        let in_space = self.spaces.iter().find_map(|(folder, oid)| {
            let rest: PathBuf = path.strip_prefix(folder).ok()?.iter().skip(1).collect();
            Some(format!("{oid}/{}", rest.display()))
        });
        let name = match (in_space, path.strip_prefix(&self.data)) {
            (Some(name), _) => name,
            (None, Ok(rest)) if rest.starts_with("base") || rest.starts_with("global") => {
                rest.to_str()?.to_string()
            }
            _ => return None,
        };
        let folders = name.matches('/').count();
        if folders < if name.starts_with("global/") { 1 } else { 2 } {
            return None;
        }
        fork(Path::new(&name)).filter(|fork| *fork != "temporary")?;
        let file = name.rfind('/').map_or(0, |at| at + 1);
        let end = name[file..].find('.').map_or(name.len(), |at| file + at);
        Some(name[..end].to_string())
    }
}

/// The fork of a relation, or the kind of another file in a database's directory.
fn fork(path: &Path) -> Option<&'static str> {
    if path.iter().any(|part| part.to_str().is_some_and(|part| part.starts_with("pgsql_tmp"))) {
        return Some("temporary");
    }
    let name = path.file_name()?.to_str()?;
    let (name, _) = name.split_once('.').unwrap_or((name, ""));
    let number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if let Some((session, rest)) = name.strip_prefix('t').and_then(|name| name.split_once('_')) {
        let relation = rest.split('_').next().unwrap_or(rest);
        return (number(session) && number(relation)).then_some("temporary relation");
    }
    match name.split_once('_') {
        None => number(name).then_some("main"),
        Some((name, fork)) if number(name) => {
            ["fsm", "vm", "init"].into_iter().find(|&known| known == fork)
        }
        Some(_) => None,
    }
}
