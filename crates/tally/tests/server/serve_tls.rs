// SPDX-License-Identifier: PostgreSQL
//! `tally serve` with TLS and with users: certificates by openssl, requests by curl.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::support;
use crate::support::serving::{self as serve, Serving};

const ALICE: &str = "alice-0123456789abcdef";
const BOB: &str = "bob-0123456789abcdef";

/// Writes a file under another name first, so that it is never incomplete.
fn put(path: &Path, text: &[u8], mode: u32) {
    let next = path.with_extension("next");
    std::fs::write(&next, text).unwrap();
    std::fs::set_permissions(&next, std::fs::Permissions::from_mode(mode)).unwrap();
    std::fs::rename(&next, path).unwrap();
}

/// A certificate for localhost that is its own authority, and its key.
struct Certificate {
    certificate: PathBuf,
    key: PathBuf,
}

impl Certificate {
    fn new(folder: &Path, name: &str) -> Certificate {
        let of = |ending: &str| folder.join(format!("{name}.{ending}"));
        let made = Certificate { certificate: of("crt"), key: of("key") };
        let done = Command::new("openssl")
            .args([
                "req",
                "-x509",
                "-newkey",
                "ec",
                "-pkeyopt",
                "ec_paramgen_curve:P-256",
                "-nodes",
            ])
            .args(["-days", "2", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"])
            .args(["-subj", &format!("/CN={name}"), "-keyout"])
            .arg(&made.key)
            .arg("-out")
            .arg(&made.certificate)
            .output()
            .unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        std::fs::set_permissions(&made.key, std::fs::Permissions::from_mode(0o600)).unwrap();
        made
    }
}

fn curl(authority: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new("curl");
    command.args(["--silent", "--show-error", "--max-time", "60", "--cacert"]).arg(authority);
    command.args(arguments).output().unwrap()
}

fn body(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn curl_reads_over_tls_and_a_renewed_certificate_needs_no_restart() {
    let cluster = serve::quiet();
    let folder = tempfile::tempdir().unwrap();
    let first = Certificate::new(folder.path(), "first");
    let paths = [&first.certificate, &first.key].map(|path| path.to_str().unwrap().to_string());
    let serving = Serving::start(&cluster, &["--tls-cert", &paths[0], "--tls-key", &paths[1]]);
    let page = serving.page().to_string();
    assert!(page.starts_with("https://127.0.0.1:"), "{page}");
    let metrics = format!("{page}metrics");
    let second = Certificate::new(folder.path(), "second");
    for version in ["--tlsv1.2", "--tlsv1.3"] {
        let text = body(&curl(&first.certificate, &[version, "--http1.1", &metrics]));
        assert!(text.contains("pgtally_up 1"), "{text}");
    }
    // A client that trusts another authority does not accept it, and one without TLS gets no answer.
    assert!(!curl(&second.certificate, &[&metrics]).status.success());
    let plain = metrics.replacen("https", "http", 1);
    assert!(!curl(&first.certificate, &[&plain]).status.success());
    // While a key does not fit its certificate, the one of before is used.
    put(&first.key, &std::fs::read(&second.key).unwrap(), 0o600);
    let authority = folder.path().join("authority.crt");
    std::fs::copy(&first.certificate, &authority).unwrap();
    body(&curl(&authority, &[&metrics]));
    put(&first.certificate, &std::fs::read(&second.certificate).unwrap(), 0o644);
    body(&curl(&second.certificate, &[&metrics]));
    assert!(!curl(&authority, &[&metrics]).status.success());
}

#[test]
fn a_key_that_others_can_read_or_that_is_missing_is_refused() {
    let cluster = serve::quiet();
    let folder = tempfile::tempdir().unwrap();
    let made = Certificate::new(folder.path(), "server");
    let data = cluster.data_dir().to_str().unwrap().to_string();
    let refused = |certificate: &Path, key: &Path, why: &str| {
        let mut command = support::tally();
        command.args(["serve", &data, "--listen", "127.0.0.1:0", "--tls-cert"]).arg(certificate);
        let complaint = support::complaint(command.arg("--tls-key").arg(key), 1);
        assert!(complaint.contains(why), "{complaint}");
    };
    refused(&made.certificate, &made.certificate, "chmod 600");
    refused(&made.key, &made.key, "no certificate in PEM");
    refused(&made.certificate, &folder.path().join("none"), "No such file");
    std::fs::set_permissions(&made.key, std::fs::Permissions::from_mode(0o644)).unwrap();
    refused(&made.certificate, &made.key, "chmod 600");
}

#[test]
fn users_have_tokens_of_their_own_which_can_be_taken_away() {
    let cluster = serve::quiet();
    let folder = tempfile::tempdir().unwrap();
    let made = Certificate::new(folder.path(), "server");
    let tokens = folder.path().join("tokens");
    put(&tokens, format!("alice {ALICE}\nbob {BOB}\n").as_bytes(), 0o600);
    let [certificate, key, file] =
        [&made.certificate, &made.key, &tokens].map(|path| path.to_str().unwrap().to_string());
    let arguments = ["--token-file", &file, "--tls-cert", &certificate, "--tls-key", &key];
    let serving = Serving::start(&cluster, &arguments);
    let page = serving.page().to_string();
    let status = |token: &str| {
        let bearer = format!("Authorization: Bearer {token}");
        let metrics = format!("{page}metrics");
        let of =
            ["--output", "/dev/null", "--write-out", "%{http_code}", "--header", &bearer, &metrics];
        body(&curl(&made.certificate, &of))
    };
    assert_eq!(
        [status(ALICE), status(BOB), status("nobody-0123456789abcdef")],
        ["200", "200", "401"]
    );
    // A browser's cookie is that user's, and is sent over TLS only.
    let jar = folder.path().join("cookies");
    let jar = jar.to_str().unwrap();
    let welcome = format!("{page}?token={BOB}");
    let head = body(&curl(&made.certificate, &["--include", "--cookie-jar", jar, &welcome]));
    assert!(head.contains(" 303") && head.contains("; Secure"), "{head}");
    let with_cookie = || {
        let of = ["--output", "/dev/null", "--write-out", "%{http_code}", "--cookie", jar, &page];
        body(&curl(&made.certificate, &of))
    };
    assert_eq!(with_cookie(), "200");
    put(&tokens, format!("alice {ALICE}\n").as_bytes(), 0o600);
    assert_eq!([status(ALICE), status(BOB), with_cookie()], ["200", "401", "401"]);
}
