// SPDX-License-Identifier: PostgreSQL
//! Changes of several files that take place together.
//!
//! New files are written aside. Then one file, put in its place by a rename, says which of
//! them get which name and which others go; then that is done, and the file goes too. Whoever
//! is killed in between leaves it behind: who opens the recording next to write does the rest,
//! and who reads meanwhile reads as if it were done. So nothing is there twice or missing.

use crate::error::Error;
use crate::store::{self, Part, Store, UNFINISHED};
use serde::{Deserialize, Serialize};
use std::io;
use std::path::{Path, PathBuf};

const NAME: &str = "commit.json";

/// What is to be done. Paths are relative to the recording.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Commit {
    /// From, to.
    rename: Vec<(String, String)>,
    remove: Vec<String>,
}

fn exists_not(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound
}

impl Commit {
    /// Where to write the file that shall be `path`.
    pub fn stage(&mut self, store: &Store, path: &Path) -> Result<PathBuf, Error> {
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder).map_err(Error::io(folder))?;
        }
        let mut aside = path.as_os_str().to_owned();
        aside.push(UNFINISHED);
        let aside = PathBuf::from(aside);
        self.rename.push((store.relative(&aside), store.relative(path)));
        Ok(aside)
    }

    /// This file goes.
    pub fn remove(&mut self, store: &Store, path: &Path) {
        self.remove.push(store.relative(path));
    }

    /// Whether there is nothing to do.
    pub fn is_empty(&self) -> bool {
        self.rename.is_empty() && self.remove.is_empty()
    }

    /// It shall not be: what has been written aside goes.
    pub fn give_up(&self, store: &Store) {
        for (from, _) in &self.rename {
            // What was not even begun is not there.
            let _ = std::fs::remove_file(store.absolute(from));
        }
    }

    /// Do it. `durable`: it shall also outlive a failure of the machine.
    pub fn carry_out(&self, store: &Store, durable: bool) -> Result<(), Error> {
        if self.is_empty() {
            return Ok(());
        }
        if durable {
            for (from, _) in &self.rename {
                let path = store.absolute(from);
                let synced = std::fs::File::open(&path).and_then(|file| file.sync_all());
                synced.map_err(Error::io(&path))?;
            }
        }
        let path = store.journals().join(NAME);
        let text = serde_json::to_vec(self)
            .map_err(|e| Error::Part { path: path.clone(), what: e.to_string() })?;
        if let Err(error) = store::replace(&path, &text) {
            self.give_up(store);
            return Err(error);
        }
        self.finish(store)
    }

    fn finish(&self, store: &Store) -> Result<(), Error> {
        for (from, to) in &self.rename {
            let (from, to) = (store.absolute(from), store.absolute(to));
            match std::fs::rename(&from, &to) {
                // Done before.
                Err(error) if exists_not(&error) => {}
                done => done.map_err(Error::io(&from))?,
            }
        }
        for path in &self.remove {
            let path = store.absolute(path);
            match std::fs::remove_file(&path) {
                Err(error) if exists_not(&error) => {}
                done => done.map_err(Error::io(&path))?,
            }
        }
        let path = store.journals().join(NAME);
        std::fs::remove_file(&path).map_err(Error::io(&path))
    }

    /// One that was not finished.
    pub fn left(store: &Store) -> Option<Commit> {
        let text = std::fs::read(store.journals().join(NAME)).ok()?;
        serde_json::from_slice(&text).ok()
    }

    /// Finish what was left.
    pub fn recover(store: &Store) -> Result<(), Error> {
        match Commit::left(store) {
            Some(commit) => commit.finish(store),
            None => Ok(()),
        }
    }

    /// The files of a listing, as if all of this were done: each part, and where its file is
    /// now.
    pub fn foresee(&self, store: &Store, table: &str, listed: Vec<Part>) -> Vec<(Part, PathBuf)> {
        let mut parts: Vec<(Part, PathBuf)> =
            listed.into_iter().map(|part| (part.clone(), part.path)).collect();
        for (from, to) in &self.rename {
            let (from, to) = (store.absolute(from), store.absolute(to));
            let of_table = to.starts_with(store.table(table));
            if let Some(part) = Part::named(&to).filter(|_| of_table && from.exists()) {
                // What has that name already is replaced.
                parts.retain(|(known, _)| known.path != to);
                parts.push((part, from));
            }
        }
        let stays = |path: &Path| !self.removes(store, path);
        parts.retain(|(part, _)| stays(&part.path));
        parts.sort_by_key(|(part, _)| (part.begin_us, part.grade));
        parts
    }

    /// Whether a file goes.
    pub fn removes(&self, store: &Store, path: &Path) -> bool {
        // Its own new name is no reason to take a file away.
        let relative = store.relative(path);
        self.remove.contains(&relative) && !self.rename.iter().any(|(_, to)| *to == relative)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Grade;

    const TABLE: &str = "frames";

    /// Two minutes that shall become an hour, as it is when commit.json has just been put in
    /// its place.
    fn begun() -> (tempfile::TempDir, Store, Commit) {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::new(folder.path(), "machine");
        std::fs::create_dir_all(store.journals()).unwrap();
        let mut commit = Commit::default();
        for time in ["170000", "170100"] {
            let path = store.part(TABLE, "2026-03-01", time, Grade::Minute);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, time).unwrap();
            commit.remove(&store, &path);
        }
        let hour = store.part(TABLE, "2026-03-01", "170000", Grade::Hour);
        std::fs::write(commit.stage(&store, &hour).unwrap(), "the hour").unwrap();
        let text = serde_json::to_vec(&commit).unwrap();
        store::replace(&store.journals().join(NAME), &text).unwrap();
        (folder, store, commit)
    }

    /// The contents of the parts as a reader finds them.
    fn read(store: &Store) -> Vec<String> {
        let commit = Commit::left(store).unwrap_or_default();
        let parts = commit.foresee(store, TABLE, store.parts(TABLE));
        parts.iter().map(|(_, path)| std::fs::read_to_string(path).unwrap()).collect()
    }

    #[test]
    fn at_every_step_a_reader_finds_everything_once() {
        let (_folder, store, commit) = begun();
        assert_eq!(read(&store), ["the hour"]);
        let (from, to) = &commit.rename[0];
        std::fs::rename(store.absolute(from), store.absolute(to)).unwrap();
        assert_eq!(read(&store), ["the hour"]);
        std::fs::remove_file(store.absolute(&commit.remove[0])).unwrap();
        assert_eq!(read(&store), ["the hour"]);
        Commit::recover(&store).unwrap();
        assert_eq!(read(&store), ["the hour"]);
        assert_eq!(store.parts(TABLE).len(), 1);
        assert_eq!(Commit::left(&store), None);
        Commit::recover(&store).unwrap();
    }

    #[test]
    fn what_is_given_up_leaves_everything_as_it_was() {
        let (_folder, store, commit) = begun();
        std::fs::remove_file(store.journals().join(NAME)).unwrap();
        assert_eq!(read(&store), ["170000", "170100"]);
        commit.give_up(&store);
        assert_eq!(read(&store), ["170000", "170100"]);
        let left = std::fs::read_dir(store.table(TABLE).join("date=2026-03-01")).unwrap();
        assert_eq!(left.count(), 2);
    }
}
