// SPDX-License-Identifier: PostgreSQL
//! Puts the page of the reports where the command takes it in: the one that web/ has built, or
//! a bare one of tables without charts where there is none.

use std::path::{Path, PathBuf};
use std::{env, fs, io};

fn main() -> io::Result<()> {
    let own = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default());
    let built = own.join("../../build/web/report.html");
    let bare = own.join("src/bare.html");
    let out = PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default()).join("report.html");
    for path in [&built, &bare] {
        println!("cargo:rerun-if-changed={}", path.display());
    }
    let page = if built.exists() { built } else { missing(&bare) };
    fs::copy(page, out).map(|_| ())
}

fn missing(bare: &Path) -> PathBuf {
    println!("cargo:warning=the page is not built (make build/web/report.html): reports will have no charts");
    bare.to_path_buf()
}
