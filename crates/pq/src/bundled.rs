// SPDX-License-Identifier: PostgreSQL
//! What a libpq in the executable does not know of the system that it runs on, so that it finds servers, service files and
//! certificates where the system's psql does. The system's own libpq was built with these paths.

use std::path::Path;

use crate::conninfo::Conninfo;

/// Directories for `pg_service.conf`: of Debian's packages, PGDG's RPM packages, and others (Fedora, Alpine, Arch).
const SERVICE_DIRECTORIES: [&str; 3] =
    ["/etc/postgresql-common", "/etc/sysconfig/pgsql", "/etc/postgresql"];
/// Where packages of the server have its socket. Servers built from source have it in /tmp, libpq's default.
const SOCKET_DIRECTORY: &str = "/var/run/postgresql";

/// Makes libpq find what the system's psql finds. Changes the environment, so it must be called before other threads start.
///
/// glibc in a static executable would load libraries for the sources of /etc/nsswitch.conf, which need the glibc that it was
/// linked with. So names of hosts, users and services are looked up in files and DNS alone, whose code is in the executable.
pub(crate) fn adopt_system() {
    look_up_names_without_libraries();
    let set_default = |name: &str, path: &Path| {
        if std::env::var_os(name).is_none() {
            std::env::set_var(name, path);
        }
    };
    let mut directories = SERVICE_DIRECTORIES.iter().map(Path::new);
    if let Some(directory) = directories.find(|path| path.join("pg_service.conf").exists()) {
        set_default("PGSYSCONFDIR", directory);
    }
    // For sslrootcert=system.
    let certificates = openssl_probe::probe();
    if let Some(file) = &certificates.cert_file {
        set_default("SSL_CERT_FILE", file);
    }
    if let Some(directory) = certificates.cert_dir.first() {
        set_default("SSL_CERT_DIR", directory);
    }
}

#[cfg(all(target_env = "gnu", target_feature = "crt-static"))]
fn look_up_names_without_libraries() {
    use std::ffi::{c_char, c_int};

    extern "C" {
        // nss.h of glibc
        fn __nss_configure_lookup(database: *const c_char, sources: *const c_char) -> c_int;
    }
    for (database, sources) in
        [(c"hosts", c"files dns"), (c"passwd", c"files"), (c"services", c"files")]
    {
        // SAFETY: both strings are terminated, and glibc copies what it keeps. No other thread looks up names yet.
        unsafe { __nss_configure_lookup(database.as_ptr(), sources.as_ptr()) };
    }
}

#[cfg(not(all(target_env = "gnu", target_feature = "crt-static")))]
fn look_up_names_without_libraries() {}

/// The host to connect to if nothing names one, and libpq's default is another than that of the system's psql.
pub(crate) fn default_host(conninfo: &Conninfo) -> Option<&'static str> {
    let in_environment = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    choose_host(conninfo, in_environment, Path::new(SOCKET_DIRECTORY).is_dir())
}

fn choose_host(
    conninfo: &Conninfo,
    in_environment: impl Fn(&str) -> bool,
    directory_exists: bool,
) -> Option<&'static str> {
    // A service may name the host, and a host given here would replace it.
    let named = ["host", "hostaddr", "service"].into_iter().any(|keyword| conninfo.has(keyword))
        || ["PGHOST", "PGHOSTADDR", "PGSERVICE"].into_iter().any(in_environment);
    (!named && directory_exists).then_some(SOCKET_DIRECTORY)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_packages_socket_directory_is_the_default_only_where_nothing_names_a_host() {
        let choose = |conninfo: &str, set: &str, exists: bool| {
            choose_host(&Conninfo::parse(conninfo).unwrap(), |name| name == set, exists)
        };
        assert_eq!(choose("port=5433", "PGPORT", true), Some(SOCKET_DIRECTORY));
        assert_eq!(choose("host=''", "", true), Some(SOCKET_DIRECTORY));
        assert_eq!(choose("", "", false), None);
        for conninfo in ["host=/tmp", "hostaddr=127.0.0.1", "service=x"] {
            assert_eq!(choose(conninfo, "", true), None, "{conninfo}");
        }
        for variable in ["PGHOST", "PGHOSTADDR", "PGSERVICE"] {
            assert_eq!(choose("", variable, true), None, "{variable}");
        }
    }
}
