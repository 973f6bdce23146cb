// SPDX-License-Identifier: PostgreSQL
//! Ships to an S3 server.

mod support;

use support::{cloud, proxy::Proxy, python, server};

/// This is a single test, because the environment belongs to the whole process.
#[test]
fn every_interval_arrives_once_in_s3() {
    let Some(python) = python::with_requirements_of("s3") else {
        eprintln!("skipped: moto cannot be installed (no PyPI?)");
        return;
    };
    let server = server::s3(&python);
    let proxy = Proxy::start(server.port);
    for (name, value) in [
        ("AWS_ACCESS_KEY_ID", "test-key"),
        ("AWS_SECRET_ACCESS_KEY", "SECRET"),
        ("AWS_REGION", "us-east-1"),
        ("AWS_ALLOW_HTTP", "true"),
        ("AWS_ENDPOINT_URL", &format!("http://127.0.0.1:{}", proxy.port)),
    ] {
        std::env::set_var(name, value);
    }
    cloud::every_interval_arrives_once("s3", &proxy);
    std::env::set_var("AWS_ENDPOINT_URL", format!("http://127.0.0.1:{}", cloud::free_port()));
    cloud::unavailable("s3://bucket/x");
}
