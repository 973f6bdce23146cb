// SPDX-License-Identifier: PostgreSQL
//! Converts values of columns from PostgreSQL's binary form.

/// OIDs of types (pg_type.dat).
mod oid {
    pub const BOOL: u32 = 16;
    pub const BYTEA: u32 = 17;
    pub const NAME: u32 = 19;
    pub const INT8: u32 = 20;
    pub const INT2: u32 = 21;
    pub const INT4: u32 = 23;
    pub const TEXT: u32 = 25;
    pub const OID: u32 = 26;
    pub const JSON: u32 = 114;
    pub const FLOAT8: u32 = 701;
    pub const UNKNOWN: u32 = 705;
    pub const BPCHAR: u32 = 1042;
    pub const VARCHAR: u32 = 1043;
}

/// A type that a column's value can be read as.
pub trait FromValue<'a>: Sized {
    /// Read a value of a column whose type has this OID; `bytes` is `None` for null. Returns `None` if the value has
    /// another type or is malformed.
    fn from_value(bytes: Option<&'a [u8]>, of: u32) -> Option<Self>;
}

macro_rules! number {
    ($type:ty, $of:ident) => {
        impl FromValue<'_> for $type {
            fn from_value(bytes: Option<&[u8]>, of: u32) -> Option<Self> {
                (of == oid::$of).then_some(<$type>::from_be_bytes(bytes?.try_into().ok()?))
            }
        }
    };
}

number!(i16, INT2);
number!(i32, INT4);
number!(i64, INT8);
number!(u32, OID);
number!(f64, FLOAT8);

impl FromValue<'_> for bool {
    fn from_value(bytes: Option<&[u8]>, of: u32) -> Option<Self> {
        let byte = *bytes.filter(|bytes| bytes.len() == 1)?.first()?;
        (of == oid::BOOL).then_some(byte != 0)
    }
}

impl<'a> FromValue<'a> for &'a str {
    fn from_value(bytes: Option<&'a [u8]>, of: u32) -> Option<Self> {
        use oid::{BPCHAR, JSON, NAME, TEXT, UNKNOWN, VARCHAR};
        let is_text = [TEXT, NAME, VARCHAR, BPCHAR, UNKNOWN, JSON].contains(&of);
        std::str::from_utf8(bytes.filter(|_| is_text)?).ok()
    }
}

impl FromValue<'_> for String {
    fn from_value(bytes: Option<&[u8]>, of: u32) -> Option<Self> {
        <&str>::from_value(bytes, of).map(String::from)
    }
}

impl<'a> FromValue<'a> for &'a [u8] {
    fn from_value(bytes: Option<&'a [u8]>, of: u32) -> Option<Self> {
        bytes.filter(|_| of == oid::BYTEA)
    }
}

impl<'a, T: FromValue<'a>> FromValue<'a> for Option<T> {
    fn from_value(bytes: Option<&'a [u8]>, of: u32) -> Option<Self> {
        match bytes {
            None => Some(None),
            some => T::from_value(some, of).map(Some),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_only_as_their_own_type() {
        let eight: Option<&[u8]> = Some(&[0, 0, 0, 0, 0, 0, 1, 2]);
        assert_eq!(i64::from_value(eight, oid::INT8), Some(258));
        assert_eq!(i64::from_value(eight, oid::FLOAT8), None);
        assert_eq!(i32::from_value(eight, oid::INT4), None);
        assert_eq!(Option::<i64>::from_value(None, oid::INT8), Some(None));
        assert_eq!(i64::from_value(None, oid::INT8), None);
        assert_eq!(<&str>::from_value(Some(b"\xff"), oid::TEXT), None);
        assert_eq!(bool::from_value(Some(&[]), oid::BOOL), None);
    }

    #[test]
    fn each_type_has_its_length_its_sign_and_its_oid() {
        let of = |bytes: &'static [u8]| Some(bytes);
        assert_eq!(i16::from_value(of(&[0xff, 0xfe]), oid::INT2), Some(-2));
        assert_eq!(i32::from_value(of(&[0xff, 0xff, 0xff, 0xfd]), oid::INT4), Some(-3));
        assert_eq!(i64::from_value(of(&[0xff; 8]), oid::INT8), Some(-1));
        assert_eq!(u32::from_value(of(&[0xff; 4]), oid::OID), Some(u32::MAX));
        assert_eq!(u32::from_value(of(&[0xff; 4]), oid::INT4), None);
        assert_eq!(i32::from_value(of(&[0xff; 4]), oid::OID), None);
        assert_eq!(f64::from_value(of(&[0x3f, 0xf8, 0, 0, 0, 0, 0, 0]), oid::FLOAT8), Some(1.5));
        assert_eq!(i32::from_value(of(&[1, 2, 3]), oid::INT4), None);
        for (byte, value) in [(0, false), (1, true), (2, true)] {
            assert_eq!(bool::from_value(Some(&[byte]), oid::BOOL), Some(value));
        }
        assert_eq!(bool::from_value(of(&[1, 1]), oid::BOOL), None);
        assert_eq!(bool::from_value(of(&[1]), oid::INT2), None);
        // pg_type.dat: text, name, varchar, bpchar, unknown, json; int4, bytea, jsonb, xml are none of them.
        for (of, is_text) in [
            (25, true),
            (19, true),
            (1043, true),
            (1042, true),
            (705, true),
            (114, true),
            (23, false),
            (17, false),
            (3802, false),
            (142, false),
        ] {
            assert_eq!(<&str>::from_value(Some(b"x"), of), is_text.then_some("x"), "{of}");
            assert_eq!(String::from_value(Some(b"x"), of).is_some(), is_text, "{of}");
        }
        assert_eq!(<&[u8]>::from_value(Some(b"\xff\0"), oid::BYTEA), Some(&b"\xff\0"[..]));
        assert_eq!(<&[u8]>::from_value(Some(b"x"), oid::TEXT), None);
        // Null becomes `None`, but a value of another type is an error, not null.
        assert_eq!(Option::<&str>::from_value(None, oid::TEXT), Some(None));
        assert_eq!(Option::<&str>::from_value(Some(b"x"), oid::INT4), None);
        assert_eq!(<&str>::from_value(Some(b""), oid::TEXT), Some(""));
    }
}
