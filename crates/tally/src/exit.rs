// SPDX-License-Identifier: PostgreSQL
//! Ends a verb: prints its error and returns the exit status.

use std::process::ExitCode;

use error::Error;
use view::escape;

/// Prints the error, if any, and returns the exit status.
pub fn code(result: Result<(), Error>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if error.is_broken_pipe() => ExitCode::SUCCESS,
        Err(Error::Command(status)) => ExitCode::from(status),
        Err(error) => {
            escape::say(&error.to_string());
            ExitCode::from(if error.is_usage() { 2 } else { 1 })
        }
    }
}

/// What the standard library says of a number that it cannot parse, and how tally says it.
const NUMBERS: [(&str, &str); 4] = [
    ("invalid digit found in string", "must be a whole number"),
    ("cannot parse integer from empty string", "must be a whole number"),
    ("number too large to fit in target type", "the number is too large"),
    ("number too small to fit in target type", "the number is too small"),
];

/// Prints clap's message or help; the exit status is 0 for help and 2 for a usage error.
pub fn usage(error: &clap::Error) -> ExitCode {
    // The message quotes arguments, which may be file names that other users chose.
    let rendered = error.render().to_string();
    let text = NUMBERS.iter().fold(rendered.clone(), |text, (from, to)| text.replace(from, to));
    if escape::visible(&text) != text {
        escape::say(&text);
    } else if text != rendered || error.use_stderr() && !escape::fits_stderr(&text) {
        escape::say_lines(&text);
    } else {
        let _ = error.print();
    }
    ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2))
}
