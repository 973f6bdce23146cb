// SPDX-License-Identifier: PostgreSQL
//! Puts the pages of reports, profiles and traces where the command includes them from: the pages that web/ has
//! built or, if there are none, bare ones without charts.

use std::path::PathBuf;
use std::{env, fs, io};

fn main() -> io::Result<()> {
    let own = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default());
    let out = PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default());
    let bare = own.join("src/bare.html");
    println!("cargo:rerun-if-changed={}", bare.display());
    let mut lost = Vec::new();
    for (name, documents) in
        [("report.html", "reports"), ("flame.html", "profiles"), ("waterfall.html", "traces")]
    {
        let built = own.join("../../build/web").join(name);
        println!("cargo:rerun-if-changed={}", built.display());
        let page = if built.exists() {
            built
        } else {
            lost.push(documents);
            bare.clone()
        };
        fs::copy(page, out.join(name))?;
    }
    if !lost.is_empty() {
        let lost = lost.join(", ");
        println!("cargo:warning=the pages have not been built (`make build/web/report.html` does), so there are no charts in {lost}");
    }
    Ok(())
}
