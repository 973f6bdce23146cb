// SPDX-License-Identifier: PostgreSQL
//! A private installation of PostgreSQL with pg_tally in it. The server finds libraries and extensions
//! relative to its programs, so a copy of the programs uses the copy's libraries.

use std::os::unix::fs::{symlink, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use scratch::{Binaries, Undo};
use tempfile::TempDir;

use super::programs;

pub struct Installation {
    root: TempDir,
    /// Paths of the real installation.
    bin: PathBuf,
    lib: PathBuf,
    extensions: PathBuf,
}

impl Installation {
    /// An installation that no test changes; it is removed when this program has ended.
    pub fn shared() -> &'static Self {
        static SHARED: OnceLock<(Installation, Undo)> = OnceLock::new();
        let (installation, _) = SHARED.get_or_init(|| {
            let made = Installation::new();
            let undo = Undo::start("rm -rf -- \"$1\"", &[made.root.path().as_os_str()]).unwrap();
            (made, undo)
        });
        installation
    }

    pub fn new() -> Self {
        let real = Binaries::find().unwrap();
        let config = |option: &str| PathBuf::from(real.config(option).unwrap());
        let root = tempfile::tempdir().unwrap();
        // Servers run as another user, who must be able to read it.
        std::fs::set_permissions(root.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
        let share = config("--sharedir");
        let extensions = share.join("extension");
        let made = Self { bin: config("--bindir"), lib: config("--pkglibdir"), extensions, root };
        // Programs are copied, since they would follow a link back to the real installation.
        made.fill(&made.bin, |from, to| {
            programs::copy(from, to);
            Ok(())
        });
        made.fill(&made.lib, |from, to| symlink(from, to));
        made.link_libraries();
        made.fill(&share, |from, to| match from.ends_with("extension") {
            true => Ok(()),
            false => symlink(from, to),
        });
        made.fill(&made.extensions, |from, to| symlink(from, to));

        let built = Path::new(env!("CARGO_BIN_EXE_tally"));
        let tally = made.root.path().join("tally");
        if std::fs::hard_link(built, &tally).is_err() {
            programs::copy(built, &tally);
        }
        std::fs::copy(super::library(), made.at(&made.lib).join("pg_tally.so")).unwrap();
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../pg_tally");
        for entry in std::fs::read_dir(source).unwrap().flatten() {
            let name = entry.file_name().into_string().unwrap();
            if name.ends_with(".control") || name.ends_with(".sql") {
                std::fs::copy(entry.path(), made.extensions().join(name)).unwrap();
            }
        }
        made
    }

    /// Recreates a directory of the real installation here, without pg_tally's files.
    fn fill(&self, folder: &Path, put: impl Fn(&Path, &Path) -> std::io::Result<()>) {
        let to = self.at(folder);
        std::fs::create_dir_all(&to).unwrap();
        for entry in std::fs::read_dir(folder).unwrap().flatten() {
            if !entry.file_name().to_string_lossy().starts_with("pg_tally") {
                put(&entry.path(), &to.join(entry.file_name())).unwrap();
            }
        }
    }

    /// Programs of Python packages find their libraries by a relative path, in a directory NAME.libs above them.
    fn link_libraries(&self) {
        for folder in self.bin.ancestors().skip(1).take(3) {
            for entry in std::fs::read_dir(folder).unwrap().flatten() {
                if entry.path().extension().is_some_and(|extension| extension == "libs") {
                    symlink(entry.path(), self.at(&entry.path())).unwrap();
                }
            }
        }
    }

    /// The path here that corresponds to one of the real installation.
    fn at(&self, path: &Path) -> PathBuf {
        self.root.path().join(path.strip_prefix("/").unwrap())
    }

    pub fn binaries(&self) -> Binaries {
        Binaries::at(self.at(&self.bin)).unwrap()
    }

    pub fn libraries(&self) -> PathBuf {
        self.at(&self.lib)
    }

    /// The directory of the extensions' control files and scripts.
    pub fn extensions(&self) -> PathBuf {
        self.at(&self.extensions)
    }

    pub fn pg_config(&self) -> PathBuf {
        self.at(&self.bin).join("pg_config")
    }

    /// The command, in a directory other than that of its build.
    pub fn tally(&self) -> assert_cmd::Command {
        let mut command = assert_cmd::Command::new(self.root.path().join("tally"));
        for name in ["PGHOST", "PGPORT", "PGUSER", "PGPASSWORD", "PGDATABASE", "PGTALLY_LIBRARY"] {
            command.env_remove(name);
        }
        command.env("PG_CONFIG", self.pg_config());
        command
    }
}
