// SPDX-License-Identifier: PostgreSQL
//! Connection strings: parsed by libpq, merged, and written.

use std::ffi::CString;
use std::fmt;

use crate::error::{text, Error};
use crate::ffi;

/// Parameters of a connection, as keywords and values. For missing parameters, libpq uses the environment,
/// a service file, a password file or its defaults.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Conninfo {
    options: Vec<(String, String)>,
}

impl Conninfo {
    /// The parameters of a connection string or URI.
    ///
    /// # Errors
    ///
    /// libpq's errors, such as an unknown keyword or a missing quote.
    pub fn parse(string: &str) -> Result<Conninfo, Error> {
        let string = CString::new(string).map_err(|_| Error::local("it contains a null byte"))?;
        let mut message = std::ptr::null_mut();
        // SAFETY: the string is terminated; libpq sets the message to null or to memory that it allocates.
        let options = unsafe { ffi::PQconninfoParse(string.as_ptr(), &mut message) };
        // SAFETY: as above; the message is freed only after it has been copied.
        let message = unsafe {
            let copy = text(message);
            ffi::PQfreemem(message.cast());
            copy
        };
        if options.is_null() {
            return Err(Error::local(message.unwrap_or_default().trim()));
        }
        let mut found = Conninfo::default();
        let mut option = options;
        // SAFETY: the array ends with an option without a keyword, and is freed after the last access.
        unsafe {
            while let Some(keyword) = text((*option).keyword) {
                if let Some(value) = text((*option).val) {
                    found.options.push((keyword, value));
                }
                option = option.add(1);
            }
            ffi::PQconninfoFree(options);
        }
        Ok(found)
    }

    /// Set a parameter, replacing an earlier value.
    pub fn set(&mut self, keyword: &str, value: impl Into<String>) -> &mut Self {
        self.options.retain(|(known, _)| known != keyword);
        self.options.push((keyword.into(), value.into()));
        self
    }

    /// Set a parameter unless it already has a value.
    pub fn set_default(&mut self, keyword: &str, value: impl Into<String>) -> &mut Self {
        if self.get(keyword).is_none() {
            self.set(keyword, value);
        }
        self
    }

    /// The value of a parameter.
    pub fn get(&self, keyword: &str) -> Option<&str> {
        self.options.iter().find(|(known, _)| known == keyword).map(|(_, value)| value.as_str())
    }

    /// These parameters, and those of `other` for parameters that are missing.
    pub fn or(mut self, other: &Conninfo) -> Conninfo {
        for (keyword, value) in &other.options {
            self.set_default(keyword, value);
        }
        self
    }

    /// Whether a parameter has a value that is not empty.
    pub(crate) fn has(&self, keyword: &str) -> bool {
        self.get(keyword).is_some_and(|value| !value.is_empty())
    }

    /// Keywords and values in the order in which they were set.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.options.iter().map(|(keyword, value)| (keyword.as_str(), value.as_str()))
    }

    /// Whether there are no parameters.
    pub fn is_empty(&self) -> bool {
        self.options.is_empty()
    }
}

/// Formats a connection string, which may contain a password.
impl fmt::Display for Conninfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, (keyword, value)) in self.options.iter().enumerate() {
            let value = value.replace('\\', "\\\\").replace('\'', "\\'");
            write!(f, "{}{keyword}='{value}'", if at == 0 { "" } else { " " })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_and_uris_are_read_as_libpq_reads_them() {
        let uri = Conninfo::parse("postgresql://me:p%27w@h:1,k:2/d?sslmode=require").unwrap();
        let pairs: Vec<(&str, &str)> = uri.iter().collect();
        for pair in [("host", "h,k"), ("port", "1,2"), ("password", "p'w"), ("sslmode", "require")]
        {
            assert!(pairs.contains(&pair), "{pairs:?}");
        }
        assert_eq!(Conninfo::parse(&uri.to_string()).unwrap(), uri);
        let odd = Conninfo::parse(r"user='a b' password='\\\''").unwrap();
        assert_eq!((odd.get("user"), odd.get("password")), (Some("a b"), Some(r"\'")));
        let refused = Conninfo::parse("hosst=x").unwrap_err();
        assert!(refused.to_string().contains("hosst"), "{refused}");
        assert!(Conninfo::parse("host='x").is_err());
    }

    #[test]
    fn earlier_parameters_win() {
        let first = Conninfo::parse("host=a").unwrap();
        let both = first.or(&Conninfo::parse("host=b port=1").unwrap());
        assert_eq!(both.to_string(), "host='a' port='1'");
    }

    #[test]
    fn a_parameter_has_its_last_value_and_a_default_replaces_none() {
        let mut conninfo = Conninfo::default();
        assert!(conninfo.is_empty());
        conninfo
            .set("host", "a")
            .set("port", "1")
            .set("host", "b")
            .set_default("port", "2")
            .set_default("user", "u");
        assert_eq!(conninfo.to_string(), "port='1' host='b' user='u'");
        assert!(!conninfo.is_empty() && conninfo.get("dbname").is_none());
        conninfo.set("password", r"a'\b");
        assert!(conninfo.to_string().ends_with(r" password='a\'\\b'"), "{conninfo}");
        assert!(Conninfo::parse("host=a\0b").unwrap_err().to_string().contains("null byte"));
    }
}
