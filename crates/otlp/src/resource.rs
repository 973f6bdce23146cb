// SPDX-License-Identifier: PostgreSQL
//! The resource: the server that metrics and events describe.

use live::target::SegmentSource;
use opentelemetry_proto::tonic::resource::v1::Resource;
use segment::Header;

use super::attribute::{number, text};

/// PostgreSQL's default port.
const PORT: u32 = 5432;

/// The resource of the server at `place`. `header` is its segment's, if it could ever be read, and `extra` are the
/// user's attributes, which take precedence.
pub fn describe_server(
    place: &SegmentSource,
    header: Option<&Header>,
    extra: &[(String, String)],
) -> Resource {
    let machine = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let (address, port) = match place {
        SegmentSource::File(_) => (machine.clone(), header.map_or(0, |header| header.server_port)),
        SegmentSource::Server(conninfo) | SegmentSource::Samples(conninfo, _) => {
            // Use the first of several hosts; a socket is on this machine.
            let first = |name| conninfo.get(name).and_then(|list| list.split(',').next());
            let host =
                first("host").filter(|host| !host.is_empty() && !host.starts_with(['/', '@']));
            let port = first("port").and_then(|port| port.parse().ok()).unwrap_or(PORT);
            (host.unwrap_or(&machine).to_string(), port)
        }
    };
    let mut instance = address.clone();
    let mut attributes = vec![
        text("db.system.name", "postgresql"),
        text("service.name", "postgresql"),
        text("server.address", &address),
    ];
    if port != 0 {
        instance = format!("{address}:{port}");
        attributes.push(number("server.port", i64::from(port)));
    }
    attributes.push(text("service.instance.id", &instance));
    if let SegmentSource::File(_) = place {
        attributes.push(text("host.name", &machine));
    }
    if let Some(header) = header {
        let version = header.server.split(' ').nth(1).unwrap_or_default();
        for (key, value) in
            [("service.version", version), ("pgtally.data_directory", &*header.host)]
        {
            if !value.is_empty() {
                attributes.push(text(key, &view::escape::visible(value)));
            }
        }
    }
    for (key, value) in extra {
        attributes.retain(|known| known.key != *key);
        attributes.push(text(key, value));
    }
    Resource { attributes, ..Resource::default() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use opentelemetry_proto::tonic::common::v1::any_value::Value;

    fn get(resource: &Resource, key: &str) -> Option<String> {
        let found = resource.attributes.iter().filter(|attribute| attribute.key == key);
        let found: Vec<String> = found
            .map(|attribute| {
                match attribute.value.as_ref().and_then(|value| value.value.as_ref()) {
                    Some(Value::StringValue(text)) => text.clone(),
                    Some(Value::IntValue(number)) => number.to_string(),
                    other => panic!("{other:?}"),
                }
            })
            .collect();
        assert!(found.len() <= 1, "{key}: {found:?}");
        found.into_iter().next()
    }

    fn server(conninfo: &str) -> SegmentSource {
        SegmentSource::Server(pq_conninfo(conninfo))
    }

    fn pq_conninfo(text: &str) -> pq::Conninfo {
        pq::Conninfo::parse(text).unwrap()
    }

    #[test]
    fn a_server_is_named_by_address_and_port_and_never_by_a_password() {
        let place = server("host=db1,db2 port=5433,5434 user=monitor password=secret");
        let resource = describe_server(&place, None, &[]);
        assert_eq!(get(&resource, "db.system.name").as_deref(), Some("postgresql"));
        assert_eq!(get(&resource, "server.address").as_deref(), Some("db1"));
        assert_eq!(get(&resource, "server.port").as_deref(), Some("5433"));
        assert_eq!(get(&resource, "service.instance.id").as_deref(), Some("db1:5433"));
        assert!(!format!("{resource:?}").contains("secret"));
    }

    #[test]
    fn what_the_user_says_takes_precedence() {
        let extra = [("service.name".to_string(), "shop-db".to_string())];
        let resource = describe_server(&server("host=/run/postgresql"), None, &extra);
        assert_eq!(get(&resource, "service.name").as_deref(), Some("shop-db"));
        assert_eq!(get(&resource, "server.port").as_deref(), Some("5432"));
        assert!(!get(&resource, "server.address").unwrap().starts_with('/'));
    }
}
