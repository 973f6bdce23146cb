// SPDX-License-Identifier: PostgreSQL
//! Names addresses: image and function.

use std::collections::{BTreeSet, HashMap};
use std::path::Path;
use std::sync::Arc;

use crate::image::Image;
use crate::kernel_symbols::{KernelSymbols, KERNEL};
use crate::maps::Maps;

/// A function.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Function {
    /// Its file; "kernel", or "kernel [ext4]" for a module.
    pub image: Arc<str>,
    /// Its name.
    pub name: Arc<str>,
}

/// Code that belongs to no file: compiled queries, or this project's own stubs.
const NO_FILE: &str = "(generated code)";

/// The image of an address that is in no image.
pub const UNKNOWN: &str = "(unknown)";

/// Finds names; each file is read once.
#[derive(Debug, Default)]
pub struct Symbols {
    kernel: Option<KernelSymbols>,
    images: HashMap<Arc<str>, Option<Image>>,
    found: HashMap<(Arc<str>, u64), Function>,
    stripped: BTreeSet<Arc<str>>,
}

impl Symbols {
    /// The symbols of this machine.
    pub fn new() -> Symbols {
        Symbols { kernel: KernelSymbols::read(), ..Symbols::default() }
    }

    /// Whether the names of the kernel's functions are known.
    pub fn knows_kernel(&self) -> bool {
        self.kernel.is_some()
    }

    /// Looked-up files without a symbol table.
    pub fn stripped(&self) -> impl Iterator<Item = &Arc<str>> {
        self.stripped.iter()
    }

    /// The function at an address of the kernel.
    pub fn kernel(&mut self, address: u64) -> Function {
        let found = self.kernel.as_ref().and_then(|symbols| symbols.find(address));
        let (name, module) = found.unwrap_or(("(hidden)", None));
        let image = match module {
            Some(module) => format!("{KERNEL} [{module}]").into(),
            None => KERNEL.into(),
        };
        Function { image, name: name.into() }
    }

    /// The function at an address of a process. `root` is the root of its paths (/proc/PID/root).
    pub fn user(&mut self, maps: Option<&Maps>, address: u64, root: &Path) -> Function {
        let unknown = |name: &str| Function { image: UNKNOWN.into(), name: name.into() };
        let Some(maps) = maps else { return unknown("(process ended)") };
        let Some((path, offset)) = maps.find(address) else { return unknown("(not mapped)") };
        if path.is_empty() || path.starts_with('[') {
            let image = if path.is_empty() { NO_FILE } else { path };
            return Function { image: image.into(), name: image.into() };
        }
        if let Some(function) = self.found.get(&(path.clone(), offset)) {
            return function.clone();
        }
        let image = self.images.entry(path.clone()).or_insert_with(|| {
            let inside = root.join(path.trim_start_matches('/'));
            Image::read(&inside).or_else(|| Image::read(Path::new(&**path)))
        });
        let file = path.rsplit('/').next().unwrap_or(path);
        let name = match image {
            Some(image) => {
                if image.is_stripped() {
                    self.stripped.insert(path.clone());
                }
                image.function(offset, file).into()
            }
            None => format!("{file} (not readable)").into(),
        };
        let function = Function { image: path.clone(), name };
        self.found.insert((path.clone(), offset), function.clone());
        function
    }
}
