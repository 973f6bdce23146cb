// SPDX-License-Identifier: PostgreSQL
//! Changes of several files that take effect together.
//!
//! New files are written under temporary names. Then commit.json, put in place by a rename, lists
//! the final names of these files and the files to remove. The commit is carried out, and commit.json
//! is removed. If the recorder is killed meanwhile, or a call fails, commit.json stays: the next change
//! first carries out the rest, and readers read as if it had been carried out. So nothing is ever
//! missing or duplicated.

use crate::error::Error;
use crate::store::{self, DataFile, Store, UNFINISHED};
use serde::{Deserialize, Serialize};
use std::io;
use std::path::{Component, Path, PathBuf};

const NAME: &str = "commit.json";
/// Maximum number of bytes to read of commit.json.
const LARGEST: u64 = 16 << 20;

/// The changes to make. Paths are relative to the recording.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Commit {
    /// Old and new names.
    rename: Vec<(String, String)>,
    remove: Vec<String>,
}

fn is_absent(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound
}

impl Commit {
    /// The temporary name under which to write the file `path`.
    pub fn stage(&mut self, store: &Store, path: &Path) -> Result<PathBuf, Error> {
        if let Some(folder) = path.parent() {
            files::folder(folder, store.access).map_err(Error::io(folder))?;
        }
        let mut staged = path.as_os_str().to_owned();
        staged.push(UNFINISHED);
        let staged = PathBuf::from(staged);
        self.rename.push((store.relative(&staged), store.relative(path)));
        Ok(staged)
    }

    /// Remove this file.
    pub fn remove(&mut self, store: &Store, path: &Path) {
        self.remove.push(store.relative(path));
    }

    /// Whether there is nothing to do.
    pub fn is_empty(&self) -> bool {
        self.rename.is_empty() && self.remove.is_empty()
    }

    /// Whether all names are inside the recording. The file is not trusted.
    fn is_within(&self) -> bool {
        let plain = |name: &String| {
            Path::new(name).components().all(|part| matches!(part, Component::Normal(_)))
        };
        self.rename.iter().all(|(from, to)| plain(from) && plain(to))
            && self.remove.iter().all(plain)
    }

    /// Remove the files that were written under temporary names.
    pub fn abandon(&self, store: &Store) {
        for (from, _) in &self.rename {
            // A file that was never created is absent.
            let _ = std::fs::remove_file(store.absolute(from));
        }
    }

    /// Carry out the commit. `durable`: it must also survive a crash of the machine. The previous commit must have been
    /// carried out: see [`Commit::recover`].
    pub fn execute(&self, store: &Store, durable: bool) -> Result<(), Error> {
        if self.is_empty() {
            return Ok(());
        }
        if durable {
            for (from, _) in &self.rename {
                let path = store.absolute(from);
                let synced = files::open(&path).and_then(|file| file.sync_all());
                if let Err(error) = synced {
                    self.abandon(store);
                    return Err(Error::io(&path)(error));
                }
            }
        }
        let path = store.journals().join(NAME);
        let text = serde_json::to_vec(self)
            .map_err(|e| Error::File { path: path.clone(), reason: e.to_string() })?;
        if let Err(error) = store::replace(&path, &text, store.access, durable) {
            // Once commit.json has its name, the commit is valid, whatever fails after that.
            if matches!(path.try_exists(), Ok(false)) {
                self.abandon(store);
            }
            return Err(error);
        }
        self.finish(store)
    }

    fn finish(&self, store: &Store) -> Result<(), Error> {
        for (from, to) in &self.rename {
            let (from, to) = (store.absolute(from), store.absolute(to));
            match std::fs::rename(&from, &to) {
                // Done before.
                Err(error) if is_absent(&error) => {}
                done => done.map_err(Error::io(&from))?,
            }
        }
        // A file that replaces another of the same name is not removed.
        let replaced = |path: &&String| self.rename.iter().any(|(_, to)| to == *path);
        for path in self.remove.iter().filter(|path| !replaced(path)) {
            let path = store.absolute(path);
            match std::fs::remove_file(&path) {
                Err(error) if is_absent(&error) => {}
                done => done.map_err(Error::io(&path))?,
            }
        }
        let path = store.journals().join(NAME);
        std::fs::remove_file(&path).map_err(Error::io(&path))
    }

    /// The commit that a killed recorder or a failed call left unfinished; empty if there is none.
    pub fn unfinished(store: &Store) -> Result<Commit, Error> {
        let path = store.journals().join(NAME);
        match files::read(&path, LARGEST) {
            // A commit.json that is incomplete after a crash of the machine has changed nothing.
            Ok(text) => {
                let commit: Commit = serde_json::from_slice(&text).unwrap_or_default();
                match commit.is_within() {
                    true => Ok(commit),
                    false => Err(Error::File {
                        path,
                        reason: "it names files in another directory".into(),
                    }),
                }
            }
            Err(error) if is_absent(&error) => Ok(Commit::default()),
            Err(error) => Err(Error::io(&path)(error)),
        }
    }

    /// Carry out the rest of an unfinished commit. Call this before listing or naming files for another commit, which
    /// would replace it.
    pub fn recover(store: &Store) -> Result<(), Error> {
        let commit = Commit::unfinished(store)?;
        if commit.is_empty() {
            return Ok(());
        }
        commit.finish(store)
    }

    /// The listing of files after this commit: each file, and its current path.
    pub fn applied_to(
        &self,
        store: &Store,
        table: &str,
        listed: Vec<DataFile>,
    ) -> Vec<(DataFile, PathBuf)> {
        let mut files: Vec<(DataFile, PathBuf)> =
            listed.into_iter().map(|file| (file.clone(), file.path)).collect();
        for (from, to) in &self.rename {
            let (from, to) = (store.absolute(from), store.absolute(to));
            let of_table = to.starts_with(store.table(table));
            if let Some(file) = DataFile::from_path(&to).filter(|_| of_table && from.exists()) {
                // A file of that name is replaced.
                files.retain(|(known, _)| known.path != to);
                files.push((file, from));
            }
        }
        let stays = |path: &Path| !self.removes(store, path);
        files.retain(|(file, _)| stays(&file.path));
        files.sort_by_key(|(file, _)| (file.begin_us, file.compaction));
        files
    }

    /// Whether this commit removes a file.
    pub fn removes(&self, store: &Store, path: &Path) -> bool {
        // A file that replaces another of the same name is not removed.
        let relative = store.relative(path);
        self.remove.contains(&relative) && !self.rename.iter().any(|(_, to)| *to == relative)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Compaction;

    const TABLE: &str = "frames";

    /// A commit that turns two minute files into one hour file; commit.json has just been written.
    fn begun() -> (tempfile::TempDir, Store, Commit) {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::new(folder.path(), "machine");
        std::fs::create_dir_all(store.journals()).unwrap();
        let mut commit = Commit::default();
        for time in ["170000", "170100"] {
            let path = store.path(TABLE, "2026-03-01", time, Compaction::Minute);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, time).unwrap();
            commit.remove(&store, &path);
        }
        let hour = store.path(TABLE, "2026-03-01", "170000", Compaction::Hour);
        std::fs::write(commit.stage(&store, &hour).unwrap(), "the hour").unwrap();
        let text = serde_json::to_vec(&commit).unwrap();
        store::replace(&store.journals().join(NAME), &text, store.access, false).unwrap();
        (folder, store, commit)
    }

    /// The contents of the files as a reader finds them.
    fn read(store: &Store) -> Vec<String> {
        let commit = Commit::unfinished(store).unwrap();
        let files = commit.applied_to(store, TABLE, store.files(TABLE));
        files.iter().map(|(_, path)| std::fs::read_to_string(path).unwrap()).collect()
    }

    #[test]
    fn a_reader_finds_every_row_once_at_every_step() {
        let (_folder, store, commit) = begun();
        assert_eq!(read(&store), ["the hour"]);
        let (from, to) = &commit.rename[0];
        std::fs::rename(store.absolute(from), store.absolute(to)).unwrap();
        assert_eq!(read(&store), ["the hour"]);
        std::fs::remove_file(store.absolute(&commit.remove[0])).unwrap();
        assert_eq!(read(&store), ["the hour"]);
        Commit::recover(&store).unwrap();
        assert_eq!(read(&store), ["the hour"]);
        assert_eq!(store.files(TABLE).len(), 1);
        assert!(Commit::unfinished(&store).unwrap().is_empty());
        Commit::recover(&store).unwrap();
    }

    #[test]
    fn nothing_outside_of_the_recording_is_changed() {
        let victim = tempfile::NamedTempFile::new().unwrap();
        let absolute = victim.path().display().to_string();
        let (folder, store, _) = begun();
        let above = format!("../{}", victim.path().file_name().unwrap().to_string_lossy());
        assert_eq!(folder.path().parent(), victim.path().parent());
        for name in [absolute, above] {
            for text in [
                format!("{{\"rename\":[],\"remove\":[\"{name}\"]}}"),
                format!("{{\"rename\":[[\"{name}\",\"frames/it\"]],\"remove\":[]}}"),
                format!("{{\"rename\":[[\"frames/it\",\"{name}\"]],\"remove\":[]}}"),
            ] {
                std::fs::write(store.journals().join(NAME), text).unwrap();
                assert!(Commit::recover(&store).is_err() && victim.path().exists());
            }
        }
    }

    #[test]
    fn an_abandoned_commit_changes_nothing() {
        let (_folder, store, commit) = begun();
        std::fs::remove_file(store.journals().join(NAME)).unwrap();
        assert_eq!(read(&store), ["170000", "170100"]);
        commit.abandon(&store);
        assert_eq!(read(&store), ["170000", "170100"]);
        let left = std::fs::read_dir(store.table(TABLE).join("date=2026-03-01")).unwrap();
        assert_eq!(left.count(), 2);
    }
}
