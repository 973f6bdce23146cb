// SPDX-License-Identifier: PostgreSQL
//! `generate`: writes the files that differ from the specifications, and prints their names.
//! `generate --check`: prints which files differ, and how; exits with status 1 if any does.

use std::path::Path;
use std::process::ExitCode;

fn run(check: bool) -> Result<ExitCode, String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let differing = generate::differing(&root)?;
    let mut status = ExitCode::SUCCESS;
    for (name, present, wanted) in differing {
        let shown = name.display();
        if check {
            println!("{shown}: {}", generate::first_difference(&present, &wanted));
            status = ExitCode::FAILURE;
        } else {
            std::fs::write(root.join(&name), wanted)
                .map_err(|error| format!("could not write {shown}: {error}"))?;
            println!("{shown}");
        }
    }
    if check && status != ExitCode::SUCCESS {
        println!("run make generate");
    }
    Ok(status)
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let check = match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => false,
        ["--check"] => true,
        _ => {
            eprintln!("usage: generate [--check]");
            return ExitCode::from(2);
        }
    };
    run(check).unwrap_or_else(|error| {
        eprintln!("generate: {error}");
        ExitCode::FAILURE
    })
}
