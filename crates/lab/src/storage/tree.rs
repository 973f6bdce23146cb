// SPDX-License-Identifier: PostgreSQL
//! Creates the files: a tree of directories, with files in the lowest ones whose sizes have the given shares.

use files::Access;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use rand::{RngCore, SeedableRng};
use rustix::fs::Advice;

use error::Error;

use crate::storage::engine::apportioned;
use crate::storage::file::Class;

/// Content is taken from random bytes of this length, so that storage cannot compress it.
const CONTENT: usize = 1 << 20;

/// Files to create.
#[derive(Debug, Clone)]
pub struct Tree {
    /// Levels of directories.
    pub depth: usize,
    /// Directories in each.
    pub width: usize,
    /// The size of each file, in bytes, in order of creation.
    sizes: Vec<u64>,
    seed: u64,
}

impl Tree {
    /// A tree with this number of files.
    pub fn of_files(
        number: usize,
        classes: &[Class],
        depth: usize,
        width: usize,
        seed: u64,
    ) -> Self {
        let shares: Vec<f64> = classes.iter().map(|class| class.share).collect();
        // With few files, a class with a small share may get none.
        let counts = match number < classes.len() {
            true => vec![1; number],
            false => apportioned(number, &shares),
        };
        let sized = |(class, count): (&Class, usize)| vec![class.size.0; count];
        let mut sizes: Vec<u64> = classes.iter().zip(counts).flat_map(sized).collect();
        sizes.shuffle(&mut StdRng::seed_from_u64(seed));
        Self { depth, width, sizes, seed }
    }

    /// A tree with as many files as needed for this many bytes.
    pub fn of_bytes(bytes: u64, classes: &[Class], seed: u64) -> Self {
        let mean: f64 = classes.iter().map(|class| class.share * class.size.0 as f64).sum();
        let number = (bytes as f64 / mean).ceil().max(1.0) as usize;
        Self::of_files(number, classes, 2, 8, seed)
    }

    /// Bytes of all files.
    pub fn bytes(&self) -> u64 {
        self.sizes.iter().sum()
    }

    /// Number of files.
    pub fn files(&self) -> usize {
        self.sizes.len()
    }

    /// Creates the files below a directory; `stop` ends it early with an error.
    pub fn make(&self, root: &Path, stop: &AtomicBool) -> Result<(), Error> {
        let at = |path: &Path, error: std::io::Error| {
            let why = match error.kind() {
                std::io::ErrorKind::StorageFull => format!(
                    "not enough space for {} files of {} MB in total",
                    self.files(),
                    self.bytes() >> 20
                ),
                _ => error.to_string(),
            };
            Error::Failed(format!("{}: {why}", path.display()))
        };
        let mut content = vec![0; 2 * CONTENT];
        StdRng::seed_from_u64(self.seed).fill_bytes(&mut content);
        let folders = self.folders(root);
        for folder in &folders {
            files::folder(folder, Access::Everybody).map_err(|error| at(folder, error))?;
        }
        for (number, size) in self.sizes.iter().enumerate() {
            if stop.load(Ordering::Relaxed) {
                return Err(Error::Failed("interrupted while creating files".into()));
            }
            let path = folders[number % folders.len()].join(format!("f{number}"));
            let mut file =
                files::create(&path, Access::Everybody).map_err(|error| at(&path, error))?;
            let mut left = *size as usize;
            // Each file begins at a different place in the content, so that no two are alike.
            let begin = number.wrapping_mul(7919) % CONTENT;
            while left > 0 {
                let part = left.min(CONTENT);
                file.write_all(&content[begin..begin + part]).map_err(|error| at(&path, error))?;
                left -= part;
            }
        }
        Ok(())
    }

    /// The lowest directories.
    fn folders(&self, root: &Path) -> Vec<PathBuf> {
        (0..self.depth).fold(vec![root.to_path_buf()], |above, _| {
            let below =
                |folder: PathBuf| (0..self.width).map(move |n| folder.join(format!("d{n}")));
            above.into_iter().flat_map(below).collect()
        })
    }
}

/// Drops the pages of all files below a directory from the page cache, so that they are read from the device again.
/// Files that cannot be opened keep their pages.
pub fn forget(folder: &Path) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => forget(&entry.path()),
            Ok(kind) if kind.is_file() => {
                let Ok(file) = File::open(entry.path()) else { continue };
                // Dirty pages would stay.
                let _ = rustix::fs::fdatasync(&file);
                let _ = rustix::fs::fadvise(&file, 0, None, Advice::DontNeed);
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::file::Size;
    use std::collections::BTreeMap;

    fn classes() -> Vec<Class> {
        let class = |kilobytes: u64, share| Class { size: Size(kilobytes << 10), share };
        vec![class(8, 0.6), class(32, 0.25), class(512, 0.1), class(4096, 0.05)]
    }

    fn walk(folder: &Path, depth: usize, found: &mut Vec<(usize, u64)>) {
        for entry in std::fs::read_dir(folder).unwrap().flatten() {
            match entry.metadata().unwrap() {
                meta if meta.is_dir() => walk(&entry.path(), depth + 1, found),
                meta => found.push((depth, meta.len())),
            }
        }
    }

    #[test]
    fn files_have_the_wanted_sizes_and_places() {
        let folder = tempfile::tempdir().unwrap();
        let tree = Tree::of_files(200, &classes(), 2, 3, 1);
        tree.make(folder.path(), &AtomicBool::new(false)).unwrap();
        let mut found = Vec::new();
        walk(folder.path(), 0, &mut found);
        assert!(found.iter().all(|(depth, _)| *depth == 2));
        let mut sizes = BTreeMap::new();
        found.iter().for_each(|(_, size)| *sizes.entry(size >> 10).or_insert(0) += 1);
        assert_eq!(sizes, BTreeMap::from([(8, 120), (32, 50), (512, 20), (4096, 10)]));
        assert_eq!(found.iter().map(|file| file.1).sum::<u64>(), tree.bytes());
    }

    #[test]
    fn an_archive_has_about_the_wanted_bytes() {
        let tree = Tree::of_bytes(100 << 20, &classes(), 1);
        let error = tree.bytes() as f64 / f64::from(100 << 20);
        assert!((0.9..1.15).contains(&error), "{error}");
    }

    #[test]
    fn a_stop_and_a_missing_directory_are_errors() {
        let folder = tempfile::tempdir().unwrap();
        let tree = Tree::of_files(2, &classes(), 1, 1, 1);
        let error = tree.make(folder.path(), &AtomicBool::new(true)).unwrap_err();
        assert!(error.to_string().contains("interrupted"));
        let error = tree.make(Path::new("/proc/none"), &AtomicBool::new(false)).unwrap_err();
        assert!(error.to_string().contains("/proc/none"), "{error}");
    }
}
